"""Finding out what a server is, and what each thing that can be wrong with it is called."""

import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import Finished, Remark
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.port import ModelInfo
from kimi_demo.ui.texts import LANGUAGES, texts
from tests.scripted_server import MODEL_ID, Scripted, running

KEY = "sk-very-secret-0123456789"
REQUEST = ChatRequest([user("hi")], Sampling(), tools=({"type": "function", "function": {"name": "f", "parameters": {}}},))


@pytest.fixture(scope="module")
def server() -> Iterator[Scripted]:
    with running() as started:
        yield started


@pytest.fixture
def scripted(server: Scripted) -> Scripted:
    server.reset()
    return server


async def refused(base_url: str, *args: Any, **options: Any) -> Failure:
    """The failure of a connection; both languages can say it, and neither says the key."""
    with pytest.raises(Failure) as caught:
        await Endpoint.connect(base_url, *args, **options)
    return sayable(caught.value)


async def rejected(scripted: Scripted, api_key: str | None = None) -> Failure:
    """The failure of a request on a connection that was fine."""
    name, options = scripted.name, scripted.options
    scripted.scenario("reasoning")
    endpoint = await Endpoint.connect(scripted.base_url, api_key)
    scripted.scenario(name, **options)
    try:
        with pytest.raises(Failure) as streamed:
            async for _ in endpoint.stream(REQUEST):
                pass
        with pytest.raises(Failure) as whole:
            await endpoint.complete_chat(REQUEST)
        assert (whole.value.code, whole.value.params) == (streamed.value.code, streamed.value.params)
        return sayable(streamed.value)
    finally:
        await endpoint.aclose()


def sayable(failure: Failure) -> Failure:
    for language in LANGUAGES:
        sentence = texts(language).sentence(failure)
        assert sentence and KEY not in sentence
    assert KEY not in repr(failure)
    return failure


async def test_reads_the_model_once(scripted: Scripted) -> None:
    endpoint = await Endpoint.connect(scripted.base_url)
    assert endpoint.info == ModelInfo(MODEL_ID, 8192, MODEL_ID)
    assert endpoint.models == (endpoint.info,)
    for _ in range(2):
        async for _ in endpoint.stream(REQUEST):
            pass
    assert [request.path for request in scripted.requests].count("/v1/models") == 1
    assert scripted.chats[0].body["model"] == MODEL_ID
    await endpoint.aclose()


@pytest.mark.parametrize("typed", ["{root}", "{root}/", "{root}/v1/", "{root}/v1/chat/completions", " {root}/v1/models "])
async def test_base_url_as_people_type_it(scripted: Scripted, typed: str) -> None:
    endpoint = await Endpoint.connect(typed.format(root=scripted.root))
    assert endpoint.base_url == scripted.base_url
    await endpoint.aclose()


async def test_several_models(scripted: Scripted) -> None:
    scripted.model_ids = ["a", "/models/b"]
    first = await Endpoint.connect(scripted.base_url)
    named = await Endpoint.connect(scripted.base_url, model="/models/b")
    assert (first.info.id, named.info.id) == ("a", "/models/b")
    assert [model.id for model in first.models] == ["a", "/models/b"]
    failure = await refused(scripted.base_url, model="c")
    assert (failure.code, failure.params) == ("endpoint.model_not_listed", {"model": "c", "models": "a, /models/b"})
    await first.aclose()
    await named.aclose()


async def test_a_server_that_does_not_say_its_context_length(scripted: Scripted) -> None:
    scripted.max_model_len = None
    endpoint = await Endpoint.connect(scripted.base_url)
    assert endpoint.info.max_model_len is None
    await endpoint.aclose()


@pytest.mark.parametrize(
    ("owned_by", "missing", "kind"),
    [
        ("vllm", {"/version"}, "vllm"),
        ("sglang", {"/version"}, "vllm"),
        ("somebody", set(), "vllm"),
        ("somebody", {"/version"}, "openai"),
        ("moonshot", {"/version"}, "moonshot"),
    ],
)
async def test_kind_is_found_by_asking(scripted: Scripted, owned_by: str, missing: set[str], kind: str) -> None:
    scripted.owned_by, scripted.missing = owned_by, missing
    endpoint = await Endpoint.connect(scripted.base_url)
    assert endpoint.kind == kind
    switch = {"vllm": "chat_template_kwargs", "moonshot": "thinking", "openai": ""}[kind]
    assert {"chat_template_kwargs", "thinking"} & endpoint.body(REQUEST).keys() == ({switch} - {""})
    assert (await endpoint.count_tokens(REQUEST) is None) == (kind != "vllm")
    await endpoint.aclose()


async def test_kind_can_be_set(scripted: Scripted) -> None:
    endpoint = await Endpoint.connect(scripted.base_url, kind="openai")
    assert endpoint.kind == "openai"
    assert not {"/version", "/tokenize"} & {request.path for request in scripted.requests}
    await endpoint.aclose()


async def test_the_key_is_sent_and_found_nowhere_else(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    scripted.api_key = KEY
    endpoint = await Endpoint.connect(scripted.base_url, f" {KEY}\n")
    scripted.scenario("rejected", message=f"the key {KEY} may not do that")
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(REQUEST))
    assert sayable(caught.value).params["message"] == "the key … may not do that"
    assert caught.value.__suppress_context__, "a traceback would print the server's words"
    assert scripted.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in caplog.text
    assert KEY not in str(endpoint.body(REQUEST))
    await endpoint.aclose()


async def test_no_key_of_another_server_is_sent(scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    endpoint = await Endpoint.connect(scripted.base_url)
    await endpoint.complete_chat(REQUEST)
    async for _ in endpoint.stream(REQUEST):
        pass
    for request in scripted.requests:
        assert KEY not in str(request.headers) and "authorization" not in request.headers
    await endpoint.aclose()


@pytest.mark.parametrize(
    ("key", "code"),
    [(None, "needs_key"), ("", "needs_key"), ("sk-wrong", "wrong_key"), ("密钥", "key_malformed"), ("a b", "key_malformed")],
)
async def test_keys(scripted: Scripted, key: str | None, code: str) -> None:
    scripted.api_key = KEY
    assert (await refused(scripted.base_url, key)).code == f"endpoint.{code}"


@pytest.mark.parametrize(
    ("scenario", "code"),
    [
        ("html_page", "web_page"),
        ("redirect", "redirect"),
        ("loading", "loading"),
        ("fails", "server_error"),
        ("too_many", "busy"),
        ("models_empty", "no_models"),
        ("models_not_a_list", "not_openai"),
        ("models_not_json", "not_openai"),
    ],
)
async def test_servers_that_cannot_be_used(scripted: Scripted, scenario: str, code: str) -> None:
    scripted.scenario(scenario)
    assert (await refused(scripted.base_url)).code == f"endpoint.{code}"
    assert (await refused(scripted.root)).code == f"endpoint.{code}"


async def test_no_redirect_is_followed(scripted: Scripted) -> None:
    with running() as elsewhere:
        scripted.scenario("redirect", target=f"{elsewhere.base_url}/models")
        failure = await refused(scripted.base_url, KEY)
        assert failure.params["target"] == f"{elsewhere.base_url}/models"
        assert elsewhere.requests == []


async def test_nothing_at_the_path(scripted: Scripted) -> None:
    failure = await refused(scripted.root + "/other/v1")
    assert (failure.code, failure.params["route"]) == ("endpoint.no_such_route", "/other/v1/models")


async def test_slow_list_of_models(scripted: Scripted) -> None:
    scripted.scenario("models_slow", seconds=30)
    failure = await refused(scripted.base_url, connect_timeout_s=0.3)
    assert (failure.code, failure.params["seconds"]) == ("endpoint.silent", "0.3")


async def test_connection_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
    failure = await refused(address)
    assert (failure.code, failure.params["address"]) == ("endpoint.refused", f"{address}/v1")


async def test_unknown_host() -> None:
    failure = await refused("http://no-such-host.invalid:8000/v1")
    assert (failure.code, failure.params["host"]) == ("endpoint.unknown_host", "no-such-host.invalid")


async def test_connection_that_is_never_accepted() -> None:
    with contextlib.ExitStack() as stack:
        # A full backlog: the kernel drops further connection attempts unanswered, like a firewall.
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        failure = await refused(f"http://127.0.0.1:{full.getsockname()[1]}/v1", connect_timeout_s=0.3)
    assert failure.code == "endpoint.connect_timeout"


async def test_https_to_a_plain_server(scripted: Scripted) -> None:
    assert (await refused(scripted.base_url.replace("http://", "https://"))).code == "endpoint.tls"


@pytest.mark.parametrize(
    ("typed", "code"),
    [("127.0.0.1:8000", "url_no_scheme"), ("ftp://x", "url_scheme"), ("", "url_malformed"), ("http://a:b@x", "url_password")],
)
async def test_addresses_that_are_none(typed: str, code: str) -> None:
    assert (await refused(typed)).code == f"endpoint.{code}"


@pytest.mark.parametrize(
    ("scenario", "options", "code"),
    [
        ("no_auto_tool_choice", {}, "no_auto_tool_choice"),
        ("too_long", {"tokens": 9001, "limit": 8192}, "prompt_too_long"),
        ("not_found", {}, "no_such_model"),
        ("too_many", {}, "busy"),
        ("fails", {}, "server_error"),
        ("loading", {}, "loading"),
        ("html_page", {}, "web_page"),
        ("redirect", {}, "redirect"),
        ("odd_json", {}, "bad_reply"),
        ("odd_json", {"body": "[1, 2"}, "bad_reply"),
        ("rejected", {"message": "n must be 1"}, "rejected"),
        ("rejected", {"message": "unprocessable", "status": 422}, "rejected"),
        ("rejected", {"message": "no", "status": 403}, "needs_key"),
        (
            "rejected",
            {"message": "max_tokens=9000 cannot be greater than max_model_len=8192. Please request fewer output tokens."},
            "max_tokens_too_large",
        ),
    ],
)
async def test_requests_that_are_turned_down(scripted: Scripted, scenario: str, options: dict[str, Any], code: str) -> None:
    scripted.scenario(scenario, **options)
    failure = await rejected(scripted)
    assert failure.code == f"endpoint.{code}"
    if code == "prompt_too_long":
        assert failure.params == {"tokens": "9001", "limit": "8192"}
    if code == "no_auto_tool_choice":
        assert "--enable-auto-tool-choice" in texts("en").sentence(failure)


async def test_a_prompt_that_is_too_long_is_counted_to_its_end(scripted: Scripted) -> None:
    """vLLM counts up to the limit and says "at least"; /tokenize knows the rest."""
    scripted.scenario("too_long", tokens=8193)
    endpoint = await Endpoint.connect(scripted.base_url)
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(ChatRequest([user("word " * 10_000)], Sampling())))
    assert sayable(caught.value).params == {"tokens": "10005", "limit": "8192"}
    await endpoint.aclose()


async def test_a_stream_of_something_else(scripted: Scripted) -> None:
    scripted.scenario("odd_json", body="data: {not json}\n\n", content_type="text/event-stream")
    endpoint = await Endpoint.connect(scripted.base_url)
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(REQUEST))
    assert sayable(caught.value).code == "endpoint.bad_reply"
    await endpoint.aclose()


async def test_forbidden_with_a_key(scripted: Scripted) -> None:
    scripted.scenario("rejected", message="not yours", status=403)
    assert (await rejected(scripted, KEY)).code == "endpoint.forbidden"


async def test_thinking_budget_that_the_server_cannot_keep(scripted: Scripted) -> None:
    scripted.scenario("no_budget")
    endpoint = await Endpoint.connect(scripted.base_url)
    request = ChatRequest([user("hi")], Sampling(thinking_token_budget=5))
    for _ in range(2):  # streamed, it is asked again without, and remembered
        events = [event async for event in endpoint.stream(request)]
        assert [event for event in events if isinstance(event, Remark)] == [Remark("budget_not_sent")]
    assert endpoint.takes_budget is False and "thinking_token_budget" not in endpoint.body(request)
    budgets = [chat.body.get("thinking_token_budget") for chat in scripted.chats]
    assert budgets == [5, None, None]
    await endpoint.aclose()


async def test_a_reply_in_one_piece_is_asked_for_again_without_a_refused_budget_too(scripted: Scripted) -> None:
    scripted.scenario("no_budget")
    endpoint = await Endpoint.connect(scripted.base_url)
    request = ChatRequest([user("hi")], Sampling(thinking_token_budget=5))
    for _ in range(2):
        assert (await endpoint.complete_chat(request))[-1] == Finished("stop")
    assert endpoint.takes_budget is False
    assert [chat.body.get("thinking_token_budget") for chat in scripted.chats] == [5, None, None]
    scripted.scenario("rejected", message="no thinking_token_budget today")  # also without one: said, not repeated for ever
    with pytest.raises(Failure) as caught:
        await endpoint.complete_chat(request)
    assert sayable(caught.value).code == "endpoint.no_thinking_budget" and len(scripted.chats) == 4
    await endpoint.aclose()


async def test_thinking_budget_that_is_kept(scripted: Scripted) -> None:
    endpoint = await Endpoint.connect(scripted.base_url)
    assert endpoint.takes_budget is None
    events = [event async for event in endpoint.stream(ChatRequest([user("hi")], Sampling(thinking_token_budget=5)))]
    assert endpoint.takes_budget is True and not any(isinstance(event, Remark) for event in events)
    await endpoint.aclose()


async def test_text_that_cannot_be_sent(scripted: Scripted) -> None:
    """Half of a surrogate pair: JSON from a browser may hold one, UTF-8 cannot."""
    endpoint = await Endpoint.connect(scripted.base_url)
    request = ChatRequest([user("half \ud83d")], Sampling())
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(request))
    assert sayable(caught.value).code == "endpoint.broken_text"
    assert await endpoint.count_tokens(request) is None
    assert scripted.chats == []
    await endpoint.aclose()


async def test_key_that_expires_later(scripted: Scripted) -> None:
    endpoint = await Endpoint.connect(scripted.base_url, KEY)
    scripted.api_key = "another"
    with pytest.raises(Failure) as caught:
        await anext(endpoint.stream(REQUEST))
    assert sayable(caught.value).code == "endpoint.wrong_key"
    await endpoint.aclose()

"""The words of different servers for the same mistake; and that a mistake of ours never passes for one of the server's."""

import json
import re
from pathlib import Path

import httpx2
import openai
import pytest

from kimi_demo.engines import endpoint_failures
from kimi_demo.engines.endpoint_failures import Where, failure_of, rejects_stream_options
from kimi_demo.ui.texts import LANGUAGES, texts

WHERE = Where("http://host:8000/v1", "m", "sk-secret")


def status_error(status: int, body: object, content_type: str = "application/json") -> openai.APIStatusError:
    request = httpx2.Request("POST", "http://host:8000/v1/chat/completions")
    response = httpx2.Response(status, headers={"content-type": content_type}, content=json.dumps(body), request=request)
    return openai.APIStatusError("said", response=response, body=body)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (
            "This model's maximum context length is 8192 tokens. However, your prompt contains at least 8193 input tokens, which",
            ("8193", "8192"),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8900 in the messages, 100 in",
            ("8900", "8192"),
        ),
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", ("9000", "8192")),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure", ("9000", "8192")),
        (
            "The decoder prompt (length 8192) plus the number of requested output tokens (at least 1) is longer than the maximum model "
            "length of 8192.",
            ("8192", "8192"),
        ),
        ("Input length (9000) exceeds model's maximum context length (8192).", ("9000", "8192")),
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", ("269030", "262144")),
        ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", ("9000", "8192")),
    ],
)
def test_prompt_too_long_with_the_numbers_named(words: str, numbers: tuple[str, str]) -> None:
    failure = failure_of(status_error(400, {"message": words}), WHERE)
    assert failure.code == "endpoint.prompt_too_long"
    assert (failure.params["tokens"], failure.params["limit"]) == numbers


def test_prompt_too_long_counted_in_characters() -> None:
    words = (
        "This model's maximum context length is 8192 tokens. However, your prompt contains 900000 characters (more than 57344 characters"
    )
    assert failure_of(status_error(400, {"message": words}), WHERE).code == "endpoint.prompt_too_long_uncounted"


@pytest.mark.parametrize("body", [{"message": "odd"}, {"error": {"message": "odd"}}, {"error": "odd"}, {"detail": "odd"}, "odd"])
def test_a_servers_words_in_any_shape(body: object) -> None:
    failure = failure_of(status_error(418, body), WHERE)
    assert (failure.code, failure.params["message"], failure.params["status"]) == ("endpoint.rejected", "odd", "418")


@pytest.mark.parametrize("body", [None, [], {}, {"error": None}, {"message": 5}])
def test_a_server_without_words(body: object) -> None:
    assert failure_of(status_error(500, body), WHERE).params["message"] == "500"


def test_words_are_short_one_line_and_without_the_key() -> None:
    message = failure_of(status_error(500, {"message": "a\nb sk-secret " + "x" * 5000}), WHERE).params["message"]
    assert message.startswith("a b … xxx") and len(message) <= 300


def test_a_page_of_html_is_not_quoted() -> None:
    assert failure_of(status_error(502, "<html>Bad gateway</html>", "text/html"), WHERE).params["message"] == "502"


def test_a_mistake_of_ours_stays_one() -> None:
    for mistake in (TypeError("x"), KeyError("x"), AttributeError("x"), ValueError("x")):
        with pytest.raises(type(mistake)):
            failure_of(mistake, WHERE)


def test_stream_options_are_told_from_other_refusals() -> None:
    assert rejects_stream_options(status_error(400, {"message": "Unknown parameter: 'stream_options.continuous_usage_stats'"}))
    assert rejects_stream_options(status_error(422, {"detail": [{"loc": ["body", "stream_options"]}]}))
    assert not rejects_stream_options(status_error(400, {"message": "temperature"}))
    assert not rejects_stream_options(status_error(500, {"message": "stream_options"}))


def test_every_code_has_its_words_in_every_language() -> None:
    engines = Path(endpoint_failures.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in [*engines.glob("endpoint*.py"), engines / "chunks.py"])
    codes = set(re.findall(r'"(endpoint\.\w+)"', source))
    assert len(codes) > 30
    for language in LANGUAGES:
        strings = texts(language).strings
        assert not [code for code in codes for part in ("what", "hint") if not strings.get(f"failure.{code}.{part}")]

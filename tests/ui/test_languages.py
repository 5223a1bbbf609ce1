"""Which language a visitor gets, and that everything that is said to them is in it."""

import json
from pathlib import Path

import httpx
import pytest
from starlette.requests import HTTPConnection

from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.application import build
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.languages import COOKIE, AtFirst, language_of, preferred
from kimi_demo.ui.texts import LANGUAGES, TAGS, texts
from tests import scripted_server


def request(accept: str = "", cookie: str = "") -> HTTPConnection:
    headers = [(b"accept-language", accept.encode()), (b"cookie", f"{COOKIE}={cookie}".encode())]
    return HTTPConnection({"type": "http", "headers": [header for header in headers if header[1]]})


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-TW", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("de-DE,de;q=0.9,zh;q=0.5,en;q=0.4", "zh"),
        ("zhuang", "en"),
        ("fr", "en"),
        ("", "en"),
    ],
)
def test_the_browsers_first_language_that_we_speak(accept: str, language: str) -> None:
    assert preferred(accept) == language_of(request(accept)) == language


@pytest.mark.parametrize(
    ("accept", "cookie", "at_first", "language"),
    [
        ("zh", "en", "auto", "en"),  # a person's own choice before all
        ("zh", "en", "zh", "en"),
        ("en", "", "zh", "zh"),  # then what was set at the start
        ("zh", "klingon", "auto", "zh"),  # a cookie can hold anything
        ("zh", "../../etc/passwd", "en", "en"),
    ],
)
def test_what_a_person_chose_comes_before_what_was_set_before_what_the_browser_asks_for(
    accept: str, cookie: str, at_first: AtFirst, language: str
) -> None:
    assert language_of(request(accept, cookie), at_first) == language


def test_every_language_has_a_tag_and_texts() -> None:
    assert set(TAGS) == set(LANGUAGES)
    assert all(texts(language).language == language for language in LANGUAGES)
    assert texts("auto").language == "en"  # in a terminal


async def test_page_and_sentences_of_a_visitor_are_in_their_language(tmp_path: Path) -> None:
    with scripted_server.running() as server:
        settings = Settings(_env_file=None, data=tmp_path, base_url=server.base_url)
        access = Access.of(settings, 7860)
        application = await build(settings, access)
        transport = httpx.ASGITransport(app=Guard(application.asgi, access))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860", headers={"accept-language": "zh"}) as visitor:
            for chosen, language in (("", "zh"), ("en", "en"), ("zh", "zh")):
                visitor.cookies.set(COOKIE, chosen)
                say, page = texts(language).say, (await visitor.get("/")).text
                assert f'lang="{TAGS[language]}"' in page[:100] and f"<title>{say('page.title')}</title>" in page
                # What Gradio draws is in the page's configuration, as JSON.
                assert all(
                    json.dumps(say(key), ensure_ascii=False) in page
                    for key in ("tools.tab", "batch_page.engine.label", "parameter.seed.meaning")
                )
                refused = await visitor.post("/kimi/act/tools_ask", json={"text": " ", "approve": False})
                assert texts(language).failure("prompt.empty", {})[0] in refused.json()["html"]
                assert (await visitor.get("/kimi/p/none", headers={"origin": "http://evil.example"})).headers[
                    "content-language"
                ] == language
        await application.aclose()

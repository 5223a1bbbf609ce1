"""What the page must have from its first byte on. Gradio puts our `head` in place by script, seconds later: too late for the page's
language, its title, and for light or dark, which would flash."""

import re
from html import escape

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kimi_demo.ui.texts import TAGS, Texts

_HTML_TAG = re.compile(r'(<html\s+lang=)"[^"]*"')


class FirstLook:
    """ASGI middleware around Gradio's page, which it sends with more at the top. Raises ValueError where that has no head: a Gradio
    whose page is made differently."""

    def __init__(self, app: ASGIApp, texts: Texts) -> None:
        self.app = app
        self._language = TAGS[texts.language]
        self._top = (
            f'<head><title>{escape(texts.say("page.title"))}</title><link rel="stylesheet" href="kimi/static/first.css">'
            f'<script src="kimi/static/first.js" data-language="{self._language}"></script>'
            '<script src="kimi/static/kept.js"></script>'  # Gradio's first event asks it
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
            await self.app(scope, receive, send)
            return
        begun: Message = {}
        body = bytearray()

        async def collected(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun.update(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            whole = bytes(body)
            headers = MutableHeaders(scope=begun)
            if begun["status"] == 200 and headers.get("content-type", "").startswith("text/html"):
                whole = self._with_top(whole.decode()).encode()
                headers["content-length"] = str(len(whole))
            await send(begun)
            await send({"type": "http.response.body", "body": whole})

        await self.app(scope, receive, collected)

    def _with_top(self, page: str) -> str:
        before, head, after = page.partition("<head>")
        if not head:
            raise ValueError("Gradio's page has no <head>")
        # The address that relative ones start from stands in the head, and must come before them.
        base = re.search(r"<base\b[^>]*>", after)
        return _HTML_TAG.sub(rf'\1"{self._language}"', before) + self._top.replace("<head>", "<head>" + (base[0] if base else "")) + after

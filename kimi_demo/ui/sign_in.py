"""The page where one signs in, and what its form does; both stand before everything else, in the guard."""

import asyncio
import time
from collections.abc import Callable
from html import escape
from string import Template
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kimi_demo.accounts import MOST_PASSWORD_CHARS
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.attempts import Attempts
from kimi_demo.ui.access import Access
from kimi_demo.ui.languages import language_of
from kimi_demo.ui.plain import refusal
from kimi_demo.ui.sessions import GUEST
from kimi_demo.ui.texts import texts

SIGN_IN, SIGN_OUT = "/kimi/sign-in", "/kimi/sign-out"
INVITATION = "invite"
MOST_BYTES = 8192

_PAGE = Template("""<!doctype html>
<html lang="$language"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,-apple-system,"PingFang SC","Microsoft YaHei",sans-serif;margin:14vh auto;
max-width:21rem;padding:0 1.25rem}
h1{font-size:1.35rem;margin:0 0 1.2rem}label{display:block;margin:0 0 .9rem}span{display:block;font-size:.875rem;opacity:.8}
input,button{font:inherit;width:100%;box-sizing:border-box;padding:.55rem .7rem;border-radius:.6rem;border:1px solid #8893a5}
button{background:#4f46e5;border-color:#4f46e5;color:#fff;font-weight:600;cursor:pointer}
p{margin:0 0 1rem}p[role=alert]{color:#b91c1c}@media (prefers-color-scheme:dark){p[role=alert]{color:#fca5a5}}
:focus-visible{outline:2px solid #6366f1;outline-offset:2px}
</style></head><body><main><h1>$title</h1>$told$form</main></body></html>
""")
_FORM = Template("""<form method="post" action="sign-in">
<label><span>$name</span><input name="name" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus></label>
<label><span>$password</span><input name="password" type="password" autocomplete="current-password" required></label>
<button>$go</button></form>""")


class SignIn:
    """clock: seconds that only go on, for tests to hand in their own."""

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._attempts = Attempts()
        self._clock = clock
        self._one = asyncio.Lock()  # each takes memory and a fifth of a second: one after the other

    async def answer(self, request: Request) -> Response | None:
        """What the sign-in has to say to the request; None where it may go on."""
        path, access = request.scope["path"], self._access
        if access.sessions is None:
            return None
        if path == SIGN_OUT and request.method == "POST":
            gone = RedirectResponse(request.scope.get("root_path", "") + SIGN_IN, 303)
            gone.delete_cookie(access.session_cookie)
            return gone
        if INVITATION in request.query_params and request.method == "GET":
            return self._invited(request)
        if path == SIGN_IN:
            return await self._sent(request) if request.method == "POST" else self._page(request)
        if access.has_session(request) or access.is_operator(request):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(request.scope.get("root_path", "") + SIGN_IN, 303, {"cache-control": "no-store"})
        return refusal(401, Failure("access.sign_in"), request)

    def _invited(self, request: Request) -> Response:
        sessions = self._access.sessions
        assert sessions is not None
        if not sessions.is_invitation(request.query_params[INVITATION], time.time()):
            return self._page(request, Failure("access.invitation_over"), 403)
        return self._begun(request, GUEST, "")

    async def _sent(self, request: Request) -> Response:
        access = self._access
        assert access.sessions is not None
        if access.sessions.accounts is None:
            return self._page(request, Failure("access.no_accounts"), 403)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BYTES:
                return self._page(request, Failure("access.wrong_password"), 413)
        if wait := self._attempts.wait_s(self._clock()):
            return self._page(request, Failure("access.attempts", seconds=max(1, round(wait))), 429)
        fields = parse_qs(body.decode("utf-8", "replace"))
        name, password = (fields.get(key, [""])[0] for key in ("name", "password"))
        self._attempts.begin(self._clock())
        async with self._one:
            account = await asyncio.to_thread(access.sessions.accounts.of_password, name, password[:MOST_PASSWORD_CHARS])
        if account is None:
            return self._page(request, Failure("access.wrong_password"), 403)
        self._attempts.right()
        return self._begun(request, account.name, account.mark)

    def _begun(self, request: Request, name: str, mark: str) -> Response:
        access = self._access
        assert access.sessions is not None
        answer = RedirectResponse(request.scope.get("root_path", "") + "/", 303, {"cache-control": "no-store"})
        answer.set_cookie(
            access.session_cookie,
            access.sessions.begin(name, mark, time.time()),
            max_age=int(access.sessions.lasts_s),
            httponly=True,
            samesite="lax",
            secure=access.is_https(request),
        )
        return answer

    def _page(self, request: Request, failure: Failure | None = None, status: int = 200) -> Response:
        assert self._access.sessions is not None
        has_accounts = self._access.sessions.accounts is not None
        if failure is None and not has_accounts:
            failure = Failure("access.no_accounts")
        language = language_of(request)
        words = texts(language)
        told = f'<p role="alert">{escape(words.sentence(failure))}</p>' if failure is not None else ""
        shown = {key: escape(words.say(f"sign_in.{key}")) for key in ("title", "name", "password", "go")}
        form = _FORM.substitute(shown) if has_accounts else ""
        page = _PAGE.substitute(shown, language=language, told=told, form=form)
        return HTMLResponse(page, status, {"cache-control": "no-store"})

"""The door of the page: every request passes here before Gradio or a route of ours sees it (pure ASGI, nothing is buffered).

In order: a known Host (DNS rebinding), no foreign Origin (another site driving the local port), a body of bounded size, user
and password where asked for (not for a published run), the operator's link, Gradio's open routes. Then cookies and security
headers on the way out.
"""

import re
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.published import TOKEN
from kimi_demo.ui.access import OPERATOR_PARAMETER, Access
from kimi_demo.ui.gradio_routes import PREFIX, is_open
from kimi_demo.ui.plain import refusal
from kimi_demo.ui.sign_in import SignIn

MAX_BODY = 10 * 1024 * 1024  # bytes; the longest prompt a page accepts is 1.2 MB of UTF-8
HEALTH = "/healthz"

# Gradio needs inline scripts and eval; nothing may be fetched from, or sent to, another host (a remote image in a model's
# answer would carry the conversation away). Frames: none, so that nobody lays the page under theirs.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'self'",
        "object-src 'none'",
    )
)
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_PUBLISHED = re.compile(rf"/kimi/p/{TOKEN}(/file)?")
_YEAR_S = 365 * 24 * 3600


class Guard:
    """ASGI middleware around the page. max_body: bytes of one request; more is answered with 413."""

    def __init__(self, app: ASGIApp, access: Access, max_body: int = MAX_BODY) -> None:
        self.app = app
        self.access = access
        self.max_body = max_body
        self.sign_in = SignIn(access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # nothing here speaks it; before the accept it is a 403
        else:
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        answer = self._answer(request)
        if answer is None and not _is_free(request):
            answer = await self.sign_in.answer(Request(scope, receive))
        if answer is not None:
            await answer(scope, receive, self._leaving(request, send))
            return
        body = _Body(self.max_body, receive, self._leaving(request, send), _too_large(request, self.max_body))
        scope["headers"] = self._trusted_headers(request)
        try:
            await self.app(scope, body.receive, body.send)
        except Exception:
            if not body.refused:  # what the application makes of a body that was cut off is its echo of our 413
                raise
        await body.finish(scope, receive)

    def _answer(self, request: Request) -> Response | None:
        """The guard's own answer, or None where the request may go on."""
        host = request.headers.get("host", "")
        if len(request.headers.getlist("host")) != 1 or not self.access.hosts.knows(host):
            return _refuse(request, 421, Failure("access.foreign_host", host=host[:100]))
        if not self._comes_from_us(request, host):
            return _refuse(request, 403, Failure("access.foreign_origin"))
        if int(_digits(request.headers.get("content-length", ""))) > self.max_body:
            return _too_large(request, self.max_body)
        if is_published(request.scope["path"]) and request.method in ("GET", "HEAD"):
            return None  # for people without an account; the operator's token is not looked at here either
        if request.url.path != HEALTH and not self.access.is_signed_in(request.headers.get("authorization", "")):
            realm = {"www-authenticate": 'Basic realm="Kimi demo", charset="UTF-8"'}
            return _refuse(request, 401, Failure("access.sign_in"), realm)
        if OPERATOR_PARAMETER in request.query_params and request.method in ("GET", "HEAD"):
            return self._operator(request)
        if not is_open(request.scope["path"], request.query_params):
            return _refuse(request, 404, Failure("access.closed_route"))
        return None

    def _comes_from_us(self, request: Request, host: str) -> bool:
        headers = request.headers
        if "origin" in headers:
            hosts = [host, *self._forwarded_host(request)]
            return all(self.access.hosts.is_own_origin(origin, hosts) for origin in headers.getlist("origin"))
        # Browsers leave Origin out of plain GETs, but say where they come from. Another port of the same host is "same-site".
        if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
            return True
        follows_a_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return request.method in ("GET", "HEAD") and follows_a_link and not request.scope["path"].startswith(PREFIX)

    def _forwarded_host(self, request: Request) -> list[str]:
        """X-Forwarded-Host, where a proxy that is believed says it and it is a name of this page."""
        named = self.access.proxies.host(request)
        return [named] if self.access.hosts.knows(named) else []

    def _trusted_headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Gradio builds the page's addresses from these headers, whoever sent them: keep out what nobody who is believed said."""
        dropped = {b"x-gradio-server"}
        if not self.access.proxies.sent(request):
            dropped |= {b"x-forwarded-proto", b"x-forwarded-for", b"x-forwarded-port", b"x-forwarded-prefix", b"forwarded"}
        if not self._forwarded_host(request):
            dropped.add(b"x-forwarded-host")
        kept = [(name, value) for name, value in request.headers.raw if name.lower() not in dropped]
        if self.access.is_https(request) and not self.access.proxies.sent(request):
            kept.append((b"x-forwarded-proto", b"https"))  # through the share service, which does not say so itself
        return kept

    def _operator(self, request: Request) -> Response:
        """The link printed at the start: swap the token for a cookie, and take it out of the address bar."""
        if not self.access.is_token(request.query_params[OPERATOR_PARAMETER]):
            return _refuse(request, 403, Failure("access.operator_link_old"))
        path = "/" + request.url.path.lstrip("/\\")  # "//evil" would be another host
        query = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != OPERATOR_PARAMETER])
        answer = RedirectResponse(f"{path}?{query}" if query else path, 303, {"cache-control": "no-store"})
        answer.set_cookie(
            self.access.operator_cookie, self.access.operator_proof, httponly=True, samesite="lax", secure=self.access.is_https(request)
        )
        return answer

    def _leaving(self, request: Request, send: Send) -> Send:
        """`send` that adds the headers, and the visitor's cookie to the first page they see."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name in [name for name in headers if name.startswith("access-control-")]:
                    del headers[name]
                headers.setdefault("content-security-policy", CONTENT_SECURITY_POLICY)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                if is_published(request.scope["path"]):  # its address is a secret that nobody else is to read from a link's referrer
                    headers["referrer-policy"] = "no-referrer"
                if _is_page(message, headers) and not is_published(request.scope["path"]) and not self.access.has_visitor_id(request):
                    self._greet(request, headers)
            await send(message)

        return with_headers

    def _greet(self, request: Request, headers: MutableHeaders) -> None:
        cookie = Response()
        cookie.set_cookie(
            self.access.visitor_cookie,
            self.access.visitor_cookie_value(request),
            max_age=_YEAR_S,
            httponly=True,
            samesite="lax",
            secure=self.access.is_https(request),
        )
        headers.append("set-cookie", cookie.headers["set-cookie"])


class _Body:
    """Counts a request's body as it is read; beyond the limit the answer becomes a 413, whatever the application says."""

    def __init__(self, limit: int, receive: Receive, send: Send, refusal: Response) -> None:
        self._left = limit
        self._receive = receive
        self._send = send
        self._refusal = refusal
        self._started = False
        self.refused = False

    async def receive(self) -> Message:
        if self.refused:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                self.refused = True
                return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        if self.refused and not self._started:
            return  # `finish` answers
        self._started = True
        await self._send(message)

    async def finish(self, scope: Scope, receive: Receive) -> None:
        if self.refused and not self._started:
            await self._refusal(scope, receive, self._send)


def is_published(path: str) -> bool:
    """Whether `path` (decoded, as ASGI gives it) is exactly that of a published page, or of its file."""
    return _PUBLISHED.fullmatch(path) is not None


def _is_free(request: Request) -> bool:
    """Whether nobody has to sign in for it."""
    path = request.scope["path"]
    return path == HEALTH or (is_published(path) and request.method in ("GET", "HEAD"))


def _refuse(request: Request, status: int, failure: Failure, headers: dict[str, str] | None = None) -> Response:
    return refusal(status, failure, request, headers)


def _too_large(request: Request, limit: int) -> Response:
    return _refuse(request, 413, Failure("access.too_large", limit_mb=f"{limit / 1024 / 1024:g}"), {"connection": "close"})


def _digits(value: str) -> str:
    """A Content-Length that is none is the HTTP server's to refuse."""
    return value if value.isascii() and value.isdigit() else "0"


def _is_page(message: Message, headers: MutableHeaders) -> bool:
    return message["status"] == 200 and headers.get("content-type", "").startswith("text/html")


def _is_https(request: Request) -> bool:
    forwarded = request.headers.get("x-forwarded-proto", "").split(",")[0].strip().lower()
    return request.url.scheme == "https" or forwarded == "https"

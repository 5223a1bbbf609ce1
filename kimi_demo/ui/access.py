"""Who is who: visitors by a random id in a cookie, the operator by the token that was printed at the start.

Nobody is judged by address: through a tunnel or a proxy every request comes from 127.0.0.1.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.requests import HTTPConnection

from kimi_demo.accounts import Role, read_accounts
from kimi_demo.dialect.failure import Failure
from kimi_demo.owners import owner_id
from kimi_demo.settings import Settings
from kimi_demo.ui.hosts import Hosts, is_everywhere
from kimi_demo.ui.proxies import Proxies
from kimi_demo.ui.sessions import Sessions
from kimi_demo.ui.signing import kept_key, signed, unsigned

OPERATOR_PARAMETER = "operator"
_VISITOR_ID = re.compile(r"[A-Za-z0-9_-]{43}")  # secrets.token_urlsafe(32)
_SCOPE_KEY = "kimi_demo.visitor"


@dataclass
class Access:
    """What the page knows about who may do what.

    port: the one that really listens; cookies carry it in their names, since browsers share cookies between ports.
    auth: "user:password" that every request must bring, or None.
    public: strangers are let in (--public, --share), so that what others would see of a visitor's is the operator's to decide.
    cookie_key: what visitors' cookies are signed with in public mode; None outside of it, where any well-made id will do.
    sessions: of those who sign in, or come by an invitation; None where neither is asked for.
    proxies: whose word on the visitor's scheme and host name is believed.
    share_link, share_failure: how the public link stands; both None while there is none (yet).
    """

    port: int
    hosts: Hosts
    auth: str | None = field(default=None, repr=False)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    public: bool = False
    cookie_key: bytes | None = field(default=None, repr=False)
    sessions: Sessions | None = None
    proxies: Proxies = field(default_factory=Proxies)
    invitation: str | None = field(default=None, repr=False)
    share_link: str | None = None
    share_failure: Failure | None = None

    @classmethod
    def of(cls, settings: Settings, port: int) -> "Access":
        allowed = [name for name in settings.allowed_hosts.split(",") if name.strip()]
        auth = settings.auth.get_secret_value() if settings.auth else None
        signs_in = settings.accounts is not None or settings.invite_hours is not None
        key = kept_key(settings.data) if settings.is_public or signs_in else None
        accounts = read_accounts(settings.accounts.get_secret_value()) if settings.accounts is not None else None
        return cls(
            port,
            Hosts(settings.host, allowed),
            auth,
            public=settings.is_public,
            cookie_key=key,
            sessions=Sessions(key, accounts, settings.session_hours * 3600) if key is not None and signs_in else None,
            proxies=Proxies.of(settings.trusted_proxies),
        )

    @property
    def session_cookie(self) -> str:
        return f"kimi_demo_session_{self.port}"

    def has_session(self, request: Any) -> bool:
        """Whether the visitor has signed in, or come by the invitation."""
        return self._role(request) is not None

    def _role(self, request: Any) -> Role | None:
        if self.sessions is None:
            return None
        return self.sessions.role(_cookies(request).get(self.session_cookie, ""), time.time())

    def is_https(self, request: Any) -> bool:
        """Whether the visitor's browser speaks TLS: to us, to a proxy that is believed, or to the share service, which always does."""
        connection = _connection(request)
        if connection is None:
            return False
        return connection.url.scheme == "https" or self.proxies.scheme(connection) == "https" or self._is_shared(connection)

    def _is_shared(self, connection: HTTPConnection) -> bool:
        link = (self.share_link or "").split("://")[-1].strip("/")
        return bool(link) and connection.headers.get("host", "") == link

    @property
    def visitor_cookie(self) -> str:
        return f"kimi_demo_visitor_{self.port}"

    @property
    def operator_cookie(self) -> str:
        return f"kimi_demo_operator_{self.port}"

    @property
    def operator_proof(self) -> str:
        """The value of the operator's cookie: derived from the token, which therefore never lies in a browser's store."""
        return hmac.new(self.token.encode(), b"kimi_demo operator cookie", hashlib.sha256).hexdigest()

    def owner_of(self, request: Any) -> str:
        """The owner under whom this visitor's runs are kept; `request` is Starlette's or `gr.Request`.

        It is a hash of the cookie, so that who reads the store cannot take a visitor's place. A request without the
        cookie (an API client) is an owner of its own, the same one for as long as the request lives. In public mode the operator is
        another owner than the viewer with the same cookie.
        """
        digest = hashlib.sha256(f"visitor {self.visitor_id(request)}".encode()).hexdigest()
        if not self.public or self.is_operator(request):
            return owner_id(digest, "known")
        return owner_id(digest, "viewer" if self.has_visitor_id(request) else "passing")

    def visitor_id(self, request: Any) -> str:
        """The secret id in the visitor's cookie, or a new one that holds for this request."""
        known = self._known_id(request)
        if known is not None:
            return known
        scope = _scope(request)
        return str(scope.setdefault(_SCOPE_KEY, secrets.token_urlsafe(32)))

    def has_visitor_id(self, request: Any) -> bool:
        return self._known_id(request) is not None

    def visitor_cookie_value(self, request: Any) -> str:
        """What the visitor's cookie is to hold."""
        found = self.visitor_id(request)
        return found if self.cookie_key is None else signed(self.cookie_key, "visitor", found)

    def _known_id(self, request: Any) -> str | None:
        value: str | None = _cookies(request).get(self.visitor_cookie, "")
        if self.cookie_key is not None:
            value = unsigned(self.cookie_key, "visitor", value or "")
        return value if value is not None and _VISITOR_ID.fullmatch(value) else None

    def is_operator(self, request: Any) -> bool:
        """Whether the request comes from who opened the operator's address, or signed in as one."""
        return self._role(request) == "operator" or _same(_cookies(request).get(self.operator_cookie, ""), self.operator_proof)

    def require_operator(self, request: Any) -> None:
        """Raise Failure("access.operator_only") unless the operator asks. To be called in the handler: a hidden button protects nothing."""
        if not self.is_operator(request):
            raise Failure("access.operator_only")

    def require_publisher(self, request: Any) -> None:
        """Raise Failure("publish.operator_only") where strangers are let in and somebody else than the operator asks."""
        if not self.is_trusted(request):
            raise Failure("publish.operator_only")

    def is_trusted(self, request: Any) -> bool:
        """Whether the request comes from the operator, or from any visitor where no strangers are let in."""
        return not self.public or self.is_operator(request)

    def require_trusted(self, request: Any) -> None:
        """Raise Failure("access.operator_only") unless `is_trusted`."""
        if not self.is_trusted(request):
            raise Failure("access.operator_only")

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)

    def is_signed_in(self, authorization: str) -> bool:
        """Whether an Authorization header (RFC 7617, Basic) carries the user and password; True where none are asked for."""
        if self.auth is None:
            return True
        scheme, _, encoded = authorization.strip().partition(" ")
        try:
            given = base64.b64decode(encoded.strip(), validate=True).decode() if scheme.lower() == "basic" else ""
        except (binascii.Error, UnicodeDecodeError):
            given = ""
        return _same(given, self.auth)

    def operator_address(self, host: str) -> str:
        """The page's address on this machine, with the token; `host` is the one listened on."""
        return self.address(host, {OPERATOR_PARAMETER: self.token})

    def address(self, host: str, query: Mapping[str, str]) -> str:
        shown = "127.0.0.1" if is_everywhere(host) else f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?{urlencode(query)}"


def _same(given: str, expected: str) -> bool:
    """Compare in constant time; hashing first hides the length as well."""
    return hmac.compare_digest(hashlib.sha256(given.encode()).digest(), hashlib.sha256(expected.encode()).digest())


def _connection(request: Any) -> HTTPConnection | None:
    """The Starlette request inside: a gr.Request wraps it, and returns objects of its own for cookies and scope."""
    inner = request if isinstance(request, HTTPConnection) else getattr(request, "request", None)
    return inner if isinstance(inner, HTTPConnection) else None


def _cookies(request: Any) -> Mapping[str, str]:
    connection = _connection(request)
    return connection.cookies if connection else {}


def _scope(request: Any) -> Any:
    connection = _connection(request)
    return connection.scope if connection else {}

"""The base URL as people type it → the ones worth asking."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from kimi_demo.dialect.failure import Failure

# Addresses that people copy from a curl line instead of the base URL.
_ROUTES = ("/chat/completions", "/completions", "/models", "/embeddings", "/responses")
_VERSION = re.compile(r"/v\d+[a-z0-9]*(/|$)")


def candidates(typed: str) -> list[str]:
    """Base URLs to try in turn, without a trailing slash: with `/v1` where the path names no version, then as typed.

    Raises `Failure`: endpoint.url_no_scheme, endpoint.url_scheme, endpoint.url_malformed, endpoint.url_password.
    """
    url = typed.strip().strip("\"'")
    if "://" not in url:
        if not url or re.search(r"\s", url):
            raise Failure("endpoint.url_malformed", url=url)
        raise Failure("endpoint.url_no_scheme", url=_without_userinfo(url), suggestion=f"http://{_without_userinfo(url)}")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # a port that is no number raises ValueError
    except ValueError:
        raise Failure("endpoint.url_malformed", url=_without_userinfo(url)) from None
    if parts.scheme.lower() not in ("http", "https"):
        raise Failure("endpoint.url_scheme", scheme=parts.scheme)
    if parts.username or parts.password:
        raise Failure("endpoint.url_password")
    if not host or re.search(r"[\s\\<>\"\x00-\x1f\x7f]", url) or parts.query:
        raise Failure("endpoint.url_malformed", url=url)
    path = parts.path.rstrip("/")
    for route in _ROUTES:
        path = path.removesuffix(route)
    path = path.rstrip("/")
    base = f"{parts.scheme.lower()}://{parts.netloc}{path}"
    return [base] if _VERSION.search(path) else [f"{base}/v1", base]


def root_of(base_url: str) -> str:
    """Where /health, /version and /tokenize live: the base URL without its last `/v1`."""
    return re.sub(r"/v\d+[a-z0-9]*$", "", base_url)


def is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _without_userinfo(url: str) -> str:
    return re.sub(r"(^|//)[^/@]*@", r"\1", url)

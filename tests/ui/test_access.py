"""Visitors are told apart by a secret cookie, the operator by the start-up token."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.requests import Request

from kimi_demo.dialect.failure import Failure
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.hosts import Hosts, is_loopback

VISITOR = "v" * 43


def access(port: int = 7860, auth: str | None = None) -> Access:
    return Access(port, Hosts("127.0.0.1"), auth)


def request(cookies: dict[str, str] | None = None, client: str = "127.0.0.1") -> Request:
    told = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
    headers = [(b"cookie", told.encode())] if told else []
    return Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers, "client": (client, 5000)})


def test_the_same_cookie_is_the_same_owner() -> None:
    who = access()
    cookie = {who.visitor_cookie: VISITOR}
    assert who.owner_of(request(cookie)) == who.owner_of(request(cookie))
    assert who.owner_of(request(cookie)) != who.owner_of(request({who.visitor_cookie: "w" * 43}))


def test_the_owner_in_the_store_does_not_give_the_cookie_away() -> None:
    who = access()
    owner = who.owner_of(request({who.visitor_cookie: VISITOR}))
    assert re.fullmatch("[0-9a-f]{32}", owner) and VISITOR not in owner


@pytest.mark.parametrize("value", ["", "anonymous", "v" * 42, "v" * 44, "v" * 42 + ";"])
def test_without_a_proper_cookie_nobody_shares_an_owner(value: str) -> None:
    who = access()
    first, second = request({who.visitor_cookie: value}), request({who.visitor_cookie: value})
    assert who.owner_of(first) != who.owner_of(second)
    assert who.owner_of(first) == who.owner_of(first)


def test_gradio_s_request_has_the_same_owner_as_the_request_inside() -> None:
    import gradio as gr

    who = access()
    for inner in (request({who.visitor_cookie: VISITOR}), request()):
        assert who.owner_of(gr.Request(inner)) == who.owner_of(inner)
    operator = request({who.operator_cookie: who.operator_proof})
    assert who.is_operator(gr.Request(operator))


def test_a_gradio_request_without_one_inside_is_an_owner_of_its_own() -> None:
    import gradio as gr

    who = access()
    assert who.owner_of(gr.Request()) != who.owner_of(gr.Request())
    assert not who.is_operator(gr.Request())


def test_two_apps_on_one_host_use_different_cookies() -> None:
    names = {access(7860).visitor_cookie, access(7861).visitor_cookie, access(7860).operator_cookie, access(7861).operator_cookie}
    assert len(names) == 4


def test_only_the_cookie_made_from_the_token_makes_an_operator() -> None:
    who, other = access(), access()
    who.require_operator(request({who.operator_cookie: who.operator_proof}))
    for value in ("", who.token, other.operator_proof, who.operator_proof[:-1], "\u00e9"):
        with pytest.raises(Failure) as refused:
            who.require_operator(request({who.operator_cookie: value}))
        assert refused.value.code == "access.operator_only"


def test_the_address_of_the_client_makes_nobody_an_operator() -> None:
    assert not access().is_operator(request(client="127.0.0.1"))


def test_the_token_shows_neither_in_the_cookie_nor_in_the_repr() -> None:
    who = access(auth="ann:hunter2")
    assert who.token not in who.operator_proof
    assert who.token not in repr(who) and "hunter2" not in repr(who)


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"), ("box", "box")]
)
def test_the_printed_address_carries_the_token(host: str, shown: str) -> None:
    who = access(7861)
    address = urlsplit(who.operator_address(host))
    assert address.netloc == f"{shown}:7861"
    assert parse_qs(address.query) == {"operator": [who.token]}


@pytest.mark.parametrize(
    ("header", "welcome"),
    [
        ("Basic YW5uOmh1bnRlcjI=", True),  # ann:hunter2
        ("basic  YW5uOmh1bnRlcjI=", True),
        ("Basic YW5uOmh1bnRlcjM=", False),  # ann:hunter3
        ("Basic YW5uOg==", False),  # ann:
        ("Basic", False),
        ("Basic !!!", False),
        ("Basic /w==", False),  # not UTF-8
        ("Bearer YW5uOmh1bnRlcjI=", False),
        ("", False),
    ],
)
def test_user_and_password_are_compared_whole(header: str, welcome: bool) -> None:
    assert access(auth="ann:hunter2").is_signed_in(header) is welcome


def test_a_password_may_hold_colons_and_any_letters() -> None:
    import base64

    given = base64.b64encode("安:пароль:1".encode()).decode()
    assert access(auth="安:пароль:1").is_signed_in(f"Basic {given}")


def test_where_no_password_is_asked_for_everyone_is_signed_in() -> None:
    assert access().is_signed_in("")


def test_the_settings_say_who_and_under_which_names() -> None:
    who = Access.of(Settings(auth="ann:hunter2", allowed_hosts="demo.example.org, other.example:8443"), 7999)
    assert who.port == 7999 and who.is_signed_in("Basic YW5uOmh1bnRlcjI=")
    assert who.hosts.knows("demo.example.org") and who.hosts.knows("other.example:8443") and not who.hosts.knows("example.org")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_stays_on_the_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.1.5", "box", "localhost.evil.example"])
def test_anything_else_does_not(host: str) -> None:
    assert not is_loopback(host)

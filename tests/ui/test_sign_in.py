"""Signing in: with an account, by an invitation, not at all; how long it lasts, and what slows those who guess."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from kimi_demo.accounts import hashed, read_accounts
from kimi_demo.dialect.failure import Failure
from kimi_demo.limits.attempts import FREE, Attempts
from kimi_demo.settings import Settings
from kimi_demo.ui.access import Access
from kimi_demo.ui.doors import refuse_open_doors
from kimi_demo.ui.guard import Guard
from kimi_demo.ui.hosts import Hosts
from kimi_demo.ui.proxies import Proxies
from kimi_demo.ui.sessions import Sessions

OWN = "http://127.0.0.1:7860"
PAGE = {"accept": "text/html"}
HASHES = {"ann": hashed("ann's long password"), "bob": hashed("bob's long password")}
LINES = f"ann:operator:{HASHES['ann']}\nbob:viewer:{HASHES['bob']}"


class Door:
    """A page behind the guard that says which role one has."""

    def __init__(self, lines: str | None = LINES, client: tuple[str, int] = ("10.0.0.9", 5000), **more: Any) -> None:
        sessions = Sessions(b"k" * 32, read_accounts(lines) if lines else None, 3600)
        self.access = access = Access(7860, Hosts("127.0.0.1"), public=True, cookie_key=b"k" * 32, sessions=sessions, **more)

        async def page(request: Request) -> Response:
            return PlainTextResponse("operator" if access.is_operator(request) else f"viewer {access.owner_of(request)[0]}")

        self.guard = Guard(Starlette(routes=[Route("/{path:path}", page, methods=["GET", "POST"])]), access)
        self.client = client

    def browser(self) -> TestClient:
        return TestClient(self.guard, base_url=OWN, follow_redirects=False, client=self.client)

    def signed_in(self, name: str) -> TestClient:
        browser = self.browser()
        answer = browser.post("/kimi/sign-in", data={"name": name, "password": f"{name}'s long password"})
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        return browser


def test_a_stranger_is_led_to_the_form_and_gets_nothing_else() -> None:
    stranger = Door().browser()
    led = stranger.get("/", headers=PAGE)
    assert led.status_code == 303 and led.headers["location"] == "/kimi/sign-in"
    form = stranger.get("/kimi/sign-in", headers={"accept-language": "zh"})
    assert form.status_code == 200 and "登录演示" in form.text and 'type="password"' in form.text
    for path in ("/config", "/kimi/badge", "/gradio_api/info", "/kimi/sign-in/x"):
        assert stranger.get(path).status_code == 401, path
    assert stranger.post("/kimi/act/chat_send", json={}).status_code == 401


def test_with_an_account_one_is_what_it_says() -> None:
    door = Door()
    assert door.signed_in("ann").get("/").text == "operator"
    bob = door.signed_in("bob")
    assert bob.get("/").text.startswith("viewer")
    cookie = bob.cookies[door.access.session_cookie]
    assert "bob's" not in cookie and HASHES["bob"][-20:] not in cookie
    assert bob.post("/kimi/sign-out").status_code == 303 and bob.get("/config").status_code == 401


@pytest.mark.parametrize("given", [{"name": "ann", "password": "x"}, {"name": "eve", "password": ""}, {"name": "ann"}, {}])
def test_the_wrong_ones_are_told_the_same(given: dict[str, str]) -> None:
    answer = Door().browser().post("/kimi/sign-in", data=given)
    assert answer.status_code == 403 and "The name or the password is wrong." in answer.text and "set-cookie" not in answer.headers


def changed(value: str) -> str:
    return value[:-1] + ("0" if value[-1] != "0" else "1")


@pytest.mark.parametrize("bend", [changed, lambda value: value.replace("bob", "ann"), lambda value: "", lambda value: "." + value])
def test_a_session_that_was_bent_is_none(bend: Callable[[str], str]) -> None:
    door = Door()
    bob = door.signed_in("bob")
    value = bob.cookies[door.access.session_cookie]
    bob.cookies.clear()
    bob.cookies.set(door.access.session_cookie, bend(value))
    assert bob.get("/config").status_code == 401


def test_sessions_end_with_time_and_with_the_account() -> None:
    now = time.time()
    sessions = Sessions(b"k" * 32, read_accounts(LINES), 3600)
    account = read_accounts(LINES).named("ann")
    assert account is not None
    value = sessions.begin("ann", account.mark, now)
    assert sessions.role(value, now) == "operator" and sessions.role(value, now + 3601) is None
    demoted = Sessions(b"k" * 32, read_accounts(f"ann:viewer:{HASHES['ann']}"), 3600)
    gone = Sessions(b"k" * 32, read_accounts(f"bob:viewer:{HASHES['bob']}"), 3600)
    other_key = Sessions(b"j" * 32, read_accounts(LINES), 3600)
    assert demoted.role(value, now) is None and gone.role(value, now) is None and other_key.role(value, now) is None
    assert sessions.role(sessions.invitation(now + 9999), now) is None  # signed, but not as a session


def test_an_invitation_lets_viewers_in_until_it_is_over() -> None:
    door = Door(lines=None)
    assert door.access.sessions is not None
    link = f"/?invite={door.access.sessions.invitation(time.time() + 60)}"
    guest = door.browser()
    assert guest.get(link).status_code == 303
    assert guest.get("/").text.startswith("viewer")
    over = f"/?invite={door.access.sessions.invitation(time.time() - 1)}"
    for wrong in (over, link[:-1] + "x", "/?invite="):
        answer = door.browser().get(wrong)
        assert answer.status_code == 403 and "This invitation is over." in answer.text
    told = door.browser().get("/kimi/sign-in").text
    assert "entered by an invitation" in told and "<form" not in told
    assert "entered by an invitation" in door.browser().post("/kimi/sign-in", data={"name": "a", "password": "b"}).text


def test_guessing_is_slowed_for_all_strangers_together() -> None:
    door = Door()
    for number in range(FREE):
        stranger = TestClient(door.guard, base_url=OWN, client=(f"10.0.0.{number}", 5000))
        assert stranger.post("/kimi/sign-in", data={"name": "ann", "password": "x"}).status_code == 403
    late = door.browser().post("/kimi/sign-in", data={"name": "ann", "password": "ann's long password"})
    assert late.status_code == 429 and re.search(r"looked at in \d+ s", late.text)


def test_how_long_one_waits_after_wrong_ones() -> None:
    attempts = Attempts()
    for number in range(FREE):
        assert attempts.wait_s(float(number)) == 0
        attempts.begin(float(number))
    last = float(FREE - 1)
    assert attempts.wait_s(last) == 1.0 and attempts.wait_s(last + 1) == 0
    attempts.begin(last + 1)
    assert attempts.wait_s(last + 1) == 2.0
    attempts.begin(last + 3)
    attempts.right()
    assert attempts.wait_s(last + 3) == 2.0
    for _ in range(20):
        attempts.begin(100.0)
    assert attempts.wait_s(100.0) == 60.0 and attempts.wait_s(2000.0) == 0


def test_another_site_cannot_sign_anybody_in_or_out() -> None:
    door = Door()
    evil = {"origin": "https://evil.example"}
    form = {"name": "bob", "password": "bob's long password"}
    assert door.browser().post("/kimi/sign-in", data=form, headers=evil).status_code == 403
    assert door.signed_in("bob").post("/kimi/sign-out", headers=evil).status_code == 403


@pytest.mark.parametrize(("client", "secure"), [("10.0.0.9", True), ("10.0.0.8", False), ("127.0.0.1", False)])
def test_only_a_named_proxy_is_believed(client: str, secure: bool) -> None:
    door = Door(client=(client, 5000), proxies=Proxies.of("10.0.0.9, 192.168.0.0/16"))
    answer = door.browser().post(
        "/kimi/sign-in", data={"name": "bob", "password": "bob's long password"}, headers={"x-forwarded-proto": "https"}
    )
    assert answer.status_code == 303 and ("secure" in answer.headers["set-cookie"].lower()) is secure


@pytest.mark.parametrize("more", [{"share": True}, {"host": "0.0.0.0"}])
def test_without_a_door_nothing_is_opened_to_strangers_unless_that_is_said(more: dict[str, Any]) -> None:
    with pytest.raises(Failure) as caught:
        refuse_open_doors(Settings(_env_file=None, **more))
    assert caught.value.code.endswith("_without_auth")
    for door in ({"auth": "a:b"}, {"accounts": LINES}, {"invite_hours": 1}, {"open": True}):
        refuse_open_doors(Settings(_env_file=None, **more, **door))

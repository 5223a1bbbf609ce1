"""Base URLs as people type them."""

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint_url import candidates, is_loopback, root_of


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("http://host:8000/v1", ["http://host:8000/v1"]),
        (" http://host:8000/v1/ ", ["http://host:8000/v1"]),
        ("http://host:8000", ["http://host:8000/v1", "http://host:8000"]),
        ("HTTP://host:8000///", ["http://host:8000/v1", "http://host:8000"]),
        ("'https://host/api'", ["https://host/api/v1", "https://host/api"]),
        ("https://host/v1/chat/completions", ["https://host/v1"]),
        ("https://host/v1/models/", ["https://host/v1"]),
        ("https://host/v1beta/openai/", ["https://host/v1beta/openai"]),
        ("https://host/api/paas/v4", ["https://host/api/paas/v4"]),
        ("http://[::1]:8000/v1", ["http://[::1]:8000/v1"]),
    ],
)
def test_normalised(typed: str, expected: list[str]) -> None:
    assert candidates(typed) == expected


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("localhost:8000", "url_no_scheme"),
        ("10.0.0.1:8000/v1", "url_no_scheme"),
        ("file:///etc/passwd", "url_scheme"),
        ("ftp://host/v1", "url_scheme"),
        ("", "url_malformed"),
        ("my server", "url_malformed"),
        ("http://", "url_malformed"),
        ("http://host:port/v1", "url_malformed"),
        ("http://host:99999/v1", "url_malformed"),
        ("http://ho st/v1", "url_malformed"),
        ("http://ho\0st/v1", "url_malformed"),
        ('http://"><img>/v1', "url_malformed"),
        ("http://host/v1?x=1", "url_malformed"),
        ("http://[::1/v1", "url_malformed"),
        ("http://user:hunter2@host/v1", "url_password"),
        ("user:hunter2@host:8000", "url_no_scheme"),
    ],
)
def test_refused_with_a_reason_and_without_a_password(typed: str, code: str) -> None:
    with pytest.raises(Failure) as caught:
        candidates(typed)
    assert caught.value.code == f"endpoint.{code}"
    assert "hunter2" not in str(caught.value)


def test_the_suggestion_is_the_address_with_a_scheme() -> None:
    with pytest.raises(Failure) as caught:
        candidates("localhost:8000/v1")
    assert caught.value.params["suggestion"] == "http://localhost:8000/v1"


def test_root_and_loopback() -> None:
    assert root_of("http://host:8000/v1") == "http://host:8000"
    assert root_of("http://host/llm/v1") == "http://host/llm"
    assert root_of("http://host/v1beta/openai") == "http://host/v1beta/openai"
    assert is_loopback("http://127.0.0.1:1/v1") and is_loopback("http://[::1]/v1") and is_loopback("http://localhost/v1")
    assert not is_loopback("http://127.0.0.1.example.com/v1")

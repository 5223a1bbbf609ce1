"""Streams that are read as one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from kimi_demo.ui.merged import merged


async def test_what_comes_first_is_told_first_and_all_is_told() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncGenerator[str, None]:
        yield "a"
        await gate.wait()
        yield "d"

    async def quick() -> AsyncGenerator[str, None]:
        yield "b"
        yield "c"
        gate.set()

    found = [each async for each in merged(slow(), quick())]
    assert sorted(found[:2]) == ["a", "b"] and found[2:] == ["c", "d"]
    assert [each async for each in merged()] == []  # type: ignore[var-annotated]


async def test_left_early_or_broken_all_are_closed() -> None:
    closed: list[str] = []

    async def forever(name: str, *, breaks: bool = False) -> AsyncGenerator[str, None]:
        try:
            yield name
            if breaks:
                raise ValueError(name)
            await asyncio.Event().wait()
        finally:
            closed.append(name)

    async with aclosing(merged(forever("a"), forever("b"))) as messages:
        assert await anext(messages) in ("a", "b")
    assert sorted(closed) == ["a", "b"]
    closed.clear()
    with pytest.raises(ValueError, match="b"):
        async for _ in merged(forever("a"), forever("b", breaks=True)):
            pass
    assert sorted(closed) == ["a", "b"]

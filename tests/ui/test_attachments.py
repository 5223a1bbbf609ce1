"""Images come with a message and go with it; the request that is kept only refers to them."""

import io
from pathlib import Path

import pytest
from PIL import Image

from kimi_demo.chats import Asking
from kimi_demo.dialect.conversation import ChatRequest, user
from kimi_demo.dialect.events import Asked
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.runs.images import Images
from kimi_demo.runs.registry import Registry
from kimi_demo.runs.run import Run
from kimi_demo.runs.store import Store
from kimi_demo.ui.attachments import Attachments

OWNER, OTHER = "a" * 32, "b" * 32


def picture(colour: str) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(written, "PNG")
    return written.getvalue()


async def nothing(run: Run) -> None:
    return None


async def asked_with(registry: Registry, owner: str, *images: str) -> Run:
    run = registry.start(owner, "chat", nothing, title="t", asked=Asked("q", Asking("q", Sampling(), images=images).parameters))
    await run.wait()
    return run


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(Store(tmp_path / "runs.sqlite3"), 8)


@pytest.fixture
def attachments(tmp_path: Path, registry: Registry) -> Attachments:
    found = Attachments(Images(tmp_path / "images", max_side=64, max_bytes=100_000), registry.store, most=2)
    registry.on_deleted = found.deleted
    return found


async def test_an_image_goes_with_the_last_message_that_has_it(attachments: Attachments, registry: Registry) -> None:
    for owner in (OWNER, OTHER):
        await attachments.add(owner, picture("red"))
    (image,) = attachments.chosen(OWNER)
    assert attachments.chosen(OTHER) == (image,), "the same picture has the same id for everyone, and a file for each"
    one, two = await asked_with(registry, OWNER, image), await asked_with(registry, OWNER, image)
    attachments.sent(OWNER, (image,))
    assert attachments.chosen(OWNER) == ()
    await registry.delete(one.id, OWNER)
    assert attachments.images.get(OWNER, image).path.is_file()
    await registry.delete(two.id, OWNER)
    with pytest.raises(Failure, match="images.gone"):
        attachments.images.get(OWNER, image)
    assert attachments.images.get(OTHER, image).path.is_file()


async def test_what_was_chosen_and_never_sent_is_swept_at_the_next_start(attachments: Attachments, registry: Registry) -> None:
    await attachments.add(OWNER, picture("red"))
    await attachments.add(OWNER, picture("blue"))
    red, blue = attachments.chosen(OWNER)
    await asked_with(registry, OWNER, red)
    attachments.sweep()
    assert attachments.images.get(OWNER, red).path.is_file()
    with pytest.raises(Failure, match="images.gone"):
        attachments.images.get(OWNER, blue)


async def test_no_more_than_a_message_takes(attachments: Attachments) -> None:
    for colour in ("red", "blue", "red"):
        try:
            await attachments.add(OWNER, picture(colour))
        except Failure as failure:
            assert failure.code == "images.too_many"
    assert len(attachments.chosen(OWNER)) == 2
    await attachments.remove(OWNER, attachments.chosen(OWNER)[0])
    await attachments.add(OWNER, picture("green"))
    assert len(attachments.chosen(OWNER)) == 2


async def test_a_request_is_filled_in_for_its_owner_alone(attachments: Attachments) -> None:
    await attachments.add(OWNER, picture("red"))
    request = ChatRequest([user("look", attachments.chosen(OWNER))], Sampling())
    whole = await attachments.expanded(OWNER, request)
    assert whole.messages[0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert request.messages[0]["content"][0]["image_url"]["url"].startswith("kimi-image:")
    with pytest.raises(Failure, match="images.gone"):
        await attachments.expanded(OTHER, request)
    plain = ChatRequest([user("hi")], Sampling())
    assert await attachments.expanded(OTHER, plain) is plain


def test_a_message_that_waits_keeps_its_images() -> None:
    asking = Asking("q", Sampling(stop=("a",), json_schema={"type": "object"}), images=("x", "y"))
    assert Asking.of("q", asking.parameters) == asking

"""Whether a model sees is found out by asking it, once."""

import base64
import io

import pytest
from PIL import Image

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.vision import PROBE, Vision
from tests import scripted_server


def test_the_probe_is_an_image() -> None:
    assert Image.open(io.BytesIO(base64.b64decode(PROBE.partition(",")[2]))).size == (28, 28)


@pytest.mark.parametrize("sees", [True, False])
async def test_a_model_is_asked_once(sees: bool) -> None:
    with scripted_server.running(sees=sees) as scripted:
        endpoint = await Endpoint.connect(scripted.base_url)
        vision = Vision()
        assert vision.known(endpoint) is None
        assert [await vision.sees(endpoint) for _ in range(3)] == [sees] * 3 and vision.known(endpoint) is sees
        assert len(scripted.chats) == 1 and scripted.chats[0].body["max_tokens"] == 1
        await endpoint.aclose()


async def test_a_server_that_cannot_be_asked_is_asked_again() -> None:
    vision = Vision()
    with scripted_server.running() as scripted:
        endpoint = await Endpoint.connect(scripted.base_url)
        scripted.missing.add("/v1/chat/completions")
        with pytest.raises(Failure, match="images.unknown"):
            await vision.sees(endpoint)
        scripted.missing.clear()
        assert await vision.sees(endpoint)
        await endpoint.aclose()

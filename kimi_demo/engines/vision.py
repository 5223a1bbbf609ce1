"""Whether a model sees. /v1/models does not say it, so it is asked once, with a small white image and one token."""

from weakref import WeakKeyDictionary

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint

# 28 × 28 pixels, one patch after Kimi's 2 × 2 merge of patches of 14: some processors fail on less.
PROBE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAIAAAD9b0jDAAAAKElEQVR42mP8//8/A7UBEwMNwKiho4aO"
    "Gjpq6Kiho4aOGjpq6OAzFADRYgM1sivIJAAAAABJRU5ErkJggg=="
)
_BLIND = ("endpoint.rejected", "endpoint.server_error", "endpoint.error_event")


class Vision:
    """Remembers what each connection answered."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Endpoint, bool] = WeakKeyDictionary()

    def known(self, endpoint: Endpoint | None) -> bool | None:
        """None: nobody has asked yet."""
        return None if endpoint is None else self._known.get(endpoint)

    async def sees(self, endpoint: Endpoint) -> bool:
        """Raises Failure("images.unknown") where the server could not be asked; the next call asks again."""
        known = self._known.get(endpoint)
        if known is None:
            known = await _ask(endpoint)
            self._known[endpoint] = known
        return known


async def _ask(endpoint: Endpoint) -> bool:
    part = {"type": "image_url", "image_url": {"url": PROBE}}
    message = {"role": "user", "content": [part, {"type": "text", "text": "?"}]}
    try:
        await endpoint.complete_chat(ChatRequest([message], Sampling(temperature=0, max_tokens=1), thinking=False))
    except Failure as failure:
        if failure.code in _BLIND:
            return False
        raise Failure("images.unknown") from None
    return True

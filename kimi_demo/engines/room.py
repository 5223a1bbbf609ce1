"""Whether a request fits into the context, settled before it is sent."""

from dataclasses import replace

from kimi_demo.dialect.conversation import ChatRequest
from kimi_demo.dialect.failure import Failure
from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.endpoint import Endpoint
from kimi_demo.engines.endpoint_prompt import Tokens

_TEMPLATE_TOKENS = 64
"""More than the marks that a chat template puts around a message."""


async def fit(request: ChatRequest, endpoint: Endpoint) -> ChatRequest:
    """`request` with max_tokens no larger than the room that its prompt leaves.

    Asks the server for the prompt's length only when that could matter: a token is at least one byte long.
    Raises Failure("endpoint.prompt_too_long", tokens=…, limit=…) when the prompt leaves no room.
    """
    limit = endpoint.info.max_model_len
    wanted = request.sampling.max_tokens
    if limit is None or _most_tokens(request) + wanted <= limit:
        return request
    tokens = await endpoint.count_tokens(request)
    if tokens is None:
        return request
    room = limit - tokens
    if room < 1:
        raise Failure("endpoint.prompt_too_long", tokens=tokens, limit=limit)
    return request if wanted <= room else replace(request, sampling=request.sampling.model_copy(update={"max_tokens": room}))


async def raw_fit(endpoint: Endpoint, prompt: str, sampling: Sampling) -> tuple[Sampling, Tokens | None]:
    """As `fit`, for a raw prompt; with its tokens, None where the server does not say."""
    tokens, limit = await endpoint.tokens_of(prompt), endpoint.info.max_model_len
    if tokens is None or limit is None:
        return sampling, tokens
    room = limit - tokens.count
    if room < 1:
        raise Failure("endpoint.prompt_too_long", tokens=tokens.count, limit=limit)
    return sampling.model_copy(update={"max_tokens": min(sampling.max_tokens, room)}), tokens


def _most_tokens(request: ChatRequest) -> int:
    parts = [str(message) for message in request.messages] + [str(tool) for tool in request.tools]
    return sum(len(part.encode("utf-8", "surrogatepass")) + _TEMPLATE_TOKENS for part in parts)

"""One line on a real model server: tokens/s of a reply through the page's API and through the openai client, in turn."""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from scripts.bench.figure import Figure, measured, not_run
from scripts.bench.sizes import Sizes
from tests.demo import running

_ASKED = "Tell a long story about a lighthouse."
_SEED = 7


def _rate_of_page(address: str, tokens: int) -> float:
    from gradio_client import Client

    client = Client(address, verbose=False)
    began = time.perf_counter()
    told = client.predict(_ASKED, True, tokens, 0.0, _SEED, api_name="/chat")
    return float(told["usage"]["completion_tokens"]) / (time.perf_counter() - began)


def _rate_of_client(base_url: str, tokens: int) -> float:
    from openai import OpenAI

    with OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        model = client.models.list().data[0].id
        began, made = time.perf_counter(), 0
        stream = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": _ASKED}],
            max_tokens=tokens,
            temperature=0.0,
            seed=_SEED,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"chat_template_kwargs": {"thinking": True}},
        )
        for chunk in stream:
            made = chunk.usage.completion_tokens if chunk.usage else made
        return made / (time.perf_counter() - began)


async def measure(base_url: str | None, sizes: Sizes) -> list[Figure]:
    if base_url is None:
        return [not_run("throughput_vllm", "give the address of a real server with --base-url")]
    tokens = sizes.stream_tokens
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), "--base-url", base_url) as demo:
        await asyncio.to_thread(_rate_of_client, base_url, 8)  # neither of the two pays for what only the first request pays
        pairs = [
            (await asyncio.to_thread(_rate_of_client, base_url, tokens), await asyncio.to_thread(_rate_of_page, demo.address, tokens))
            for _ in range(sizes.repeats)
        ]
    ratio = median(ours / theirs for theirs, ours in pairs)
    return [measured("throughput_vllm", ratio, client_tokens_per_s=[one for one, _ in pairs], page_tokens_per_s=[one for _, one in pairs])]

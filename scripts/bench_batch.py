"""How much slower a journalled batch is than `LLM.chat` on the same rows in the same process: both in turn, median of the ratios.

.venv/bin/python scripts/bench_batch.py --rows 64 --pairs 5
.venv/bin/python scripts/bench_batch.py --rows 1000 --tokens 256 --model /data/moonshotai/Kimi-K2.5
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kimi_demo.batches.engines import OfflineRows  # noqa: E402
from kimi_demo.batches.journal import Journal  # noqa: E402
from kimi_demo.batches.manifest import sha256_of  # noqa: E402
from kimi_demo.batches.reading import open_source  # noqa: E402
from kimi_demo.batches.running import BatchRun  # noqa: E402
from kimi_demo.batches.survey import survey  # noqa: E402
from kimi_demo.batches.versions import manifest_of  # noqa: E402
from kimi_demo.dialect.events import Event, Phase  # noqa: E402
from kimi_demo.dialect.sampling import Sampling  # noqa: E402
from kimi_demo.engines.guardian import Guardian  # noqa: E402
from kimi_demo.engines.model_folder import ModelFolder  # noqa: E402
from kimi_demo.engines.offline import OfflineEngine  # noqa: E402
from kimi_demo.engines.offline_launch import OfflineLaunch  # noqa: E402
from kimi_demo.flags import add_flags, settings_from  # noqa: E402

FLAGS = ("model", "tensor_parallel_size", "max_model_len", "gpu_memory_utilization", "cpu_kv_cache_gb", "vllm_args", "data")


def chat(prompts: list[str], sampling: Sampling, thinking: bool) -> Any:
    """Seconds and tokens of one `LLM.chat`."""

    def work(llm: Any) -> tuple[float, int]:
        from vllm import SamplingParams

        params = SamplingParams(temperature=sampling.temperature, top_p=sampling.top_p, max_tokens=sampling.max_tokens)
        asked = [[{"role": "user", "content": prompt}] for prompt in prompts]
        began = time.perf_counter()
        outputs = llm.chat(asked, params, use_tqdm=False, chat_template_kwargs={"thinking": thinking})
        return time.perf_counter() - began, sum(len(output.outputs[0].token_ids) for output in outputs)

    return work


async def batch(folder: Path, rows: OfflineRows, sampling: Sampling, thinking: bool) -> tuple[float, int]:
    """Seconds and tokens of one batch: the file read, every row in the journal and synced."""
    output = folder / "out.jsonl"
    output.unlink(missing_ok=True)
    began = time.perf_counter()
    source = open_source(folder / "in.txt")
    made = manifest_of(
        source, survey(source), sha256_of(source.path), sampling, thinking=thinking, model=rows.model, engine="offline", created_at=""
    )
    with Journal.create(output, made) as journal:
        state = await BatchRun(source.rows, journal, rows, sampling, thinking=thinking).run()
        assert state == "done" and not journal.failed
        return time.perf_counter() - began, journal.completion_tokens


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=32, help="max_tokens of a row")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    add_flags(parser, FLAGS)
    given = parser.parse_args()
    settings = settings_from(given)
    guardian = Guardian()

    def tell(event: Event) -> None:
        if isinstance(event, Phase):
            print(event.name, file=sys.stderr)

    path = await ModelFolder(settings).path(tell)
    engine = OfflineEngine(OfflineLaunch.from_settings(settings, path), guardian)
    prompts = [f"Name {number} animals and say which of them is the largest." for number in range(given.rows)]
    sampling, thinking = Sampling(temperature=0.0, top_p=1.0, max_tokens=given.tokens), True
    ratios = []
    try:
        await engine.load(tell)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "in.txt").write_text("\n".join(prompts) + "\n", encoding="utf-8")
            async with engine.feed() as feed:
                rows = OfflineRows(feed, path)
                work = chat(prompts, sampling, thinking)
                await engine.with_llm(work)  # once for each before anything counts: the prefix cache is warm for both then
                await batch(folder, rows, sampling, thinking)
                for number in range(given.pairs):
                    if number % 2:
                        ours, theirs = await batch(folder, rows, sampling, thinking), await engine.with_llm(work)
                    else:
                        theirs, ours = await engine.with_llm(work), await batch(folder, rows, sampling, thinking)
                    ratios.append(ours[0] / theirs[0])
                    print(f"LLM.chat {theirs[0]:.2f} s ({theirs[1]} tokens), batch {ours[0]:.2f} s ({ours[1]} tokens): {ratios[-1]:.3f}")
    finally:
        await engine.close()
        await asyncio.to_thread(guardian.close)
    if given.json:
        told = {"rows": given.rows, "tokens": given.tokens, "ratios": ratios, "median": statistics.median(ratios)}
        given.json.write_text(json.dumps(told) + "\n", encoding="utf-8")
    print(f"{given.rows} rows of at most {given.tokens} tokens, {given.pairs} pairs: median {statistics.median(ratios):.3f}", end="")
    print(f", from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    asyncio.run(main())

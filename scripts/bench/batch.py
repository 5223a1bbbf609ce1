"""A batch against `LLM.chat` on the same rows: scripts/bench_batch.py in a process of its own, since it loads vLLM."""

import asyncio
import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from kimi_demo.engines.accelerators import gpus
from scripts.bench.figure import Figure, measured, not_run
from tests.programs import ROOT

_LIMIT_S = 1_800


async def measure(quick: bool, pairs: int) -> list[Figure]:
    on_gpu = bool(gpus())
    key, other = ("batch_ratio_gpu", "batch_ratio") if on_gpu else ("batch_ratio", "batch_ratio_gpu")
    found = [not_run(other, "this machine has a GPU" if on_gpu else "this machine has no GPU")]
    if quick:
        return [not_run(key, "left out with --quick: it loads vLLM"), *found]
    if find_spec("vllm") is None:
        return [not_run(key, "vLLM is not installed"), *found]
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "batch.json"
        arguments = ("scripts/bench_batch.py", "--rows", "1000" if on_gpu else "64", "--pairs", str(pairs), "--json", str(into))
        program = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        try:
            _, complaint = await asyncio.wait_for(program.communicate(), _LIMIT_S)
        finally:
            if program.returncode is None:
                program.kill()
                await program.wait()
        if program.returncode:
            raise RuntimeError(f"bench_batch.py ended with {program.returncode}: {complaint.decode(errors='replace').strip()[-300:]}")
        told = json.loads(into.read_text(encoding="utf-8"))
    return [measured(key, told["median"], **told), *found]

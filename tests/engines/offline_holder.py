"""A program that holds a loaded batch engine, for tests that look at how it ends: `offline_holder.py MODEL LOG (wait|return)`.

Prints "ready" and the pids of its vLLM processes and guardian; then waits for its end, or returns without unloading.
"""

import asyncio
import sys
import threading
from pathlib import Path

import psutil

from kimi_demo.dialect.sampling import Sampling
from kimi_demo.engines.guardian import Guardian
from kimi_demo.engines.offline import OfflineEngine
from kimi_demo.engines.offline_launch import OfflineLaunch


async def main(model: str, log: Path) -> OfflineEngine:
    engine = OfflineEngine(OfflineLaunch(model, log, max_model_len=512), Guardian())
    await engine.load(lambda event: None)
    await engine.generate(["Hello"], Sampling(max_tokens=2), False, lambda event: None)
    print("ready", *(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
    return engine


if __name__ == "__main__":  # vLLM's processes import this file again
    engine = asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
    if sys.argv[3] == "wait":
        threading.Event().wait()

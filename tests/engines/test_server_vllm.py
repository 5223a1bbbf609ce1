"""The server with vLLM itself and the stand-in: the end of the one that these tests share, and one that is orphaned as it starts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import openai
import pytest

from kimi_demo.dialect.events import Phase
from kimi_demo.engines.phases import ORDER
from kimi_demo.engines.plan.arguments import layout_of
from kimi_demo.engines.plan.fit import plan_on_cpu
from kimi_demo.engines.plan.memory import GIB
from kimi_demo.engines.plan.shape import read_shape
from kimi_demo.engines.server import LOG_NAME
from tests.engines.life import Life
from tests.engines.living import alive, tree, until

ROOT = Path(__file__).parents[2]


def test_the_phases_of_a_start(life: Life) -> None:
    names = [phase.name for phase in life.phases]
    assert names[0] == "server.starting" and names[-1] == "server.ready"
    assert names == sorted(names, key=ORDER.index)
    assert {"server.reading_model", "server.starting_engine", "server.loading_weights", "server.kv_cache"} <= set(names)
    assert Phase("server.loading_weights", 1, 1) in life.phases


def test_the_planned_cache_is_what_vllm_reports(life: Life) -> None:
    log = "\n".join(life.server.log_tail(2000))
    reported = re.search(r"KV cache size: ([\d,]+) tokens, Maximum concurrency for 2,048 tokens per request: ([\d.]+)x", log)
    assert reported is not None
    shape = read_shape(Path(life.server.launch.model))
    planned = plan_on_cpu(shape, layout_of(life.server.launch.command()), 64 * GIB, life.server.launch.cpu_kv_cache_gb)
    assert planned.shape.attention == "GQA"
    assert planned.cache.tokens == pytest.approx(int(reported[1].replace(",", "")), rel=0.05)
    assert planned.cache.concurrency == pytest.approx(float(reported[2]), rel=0.05)


async def test_it_answers_with_its_thought_apart(life: Life) -> None:
    async with openai.AsyncOpenAI(base_url=life.server.base_url, api_key=life.server.api_key) as client:
        [model] = (await client.models.list()).data
        reply = await client.chat.completions.create(
            model=model.id, messages=[{"role": "user", "content": "What is the capital of France?"}], max_tokens=24, temperature=0
        )
        assert model.id == life.server.launch.model
        assert reply.choices[0].message.model_dump()["reasoning"]


def test_it_takes_no_other_key_and_hides_its_own(life: Life) -> None:
    with openai.OpenAI(base_url=life.server.base_url, api_key="guessed") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    members = tree(life.server.pid)
    assert len(members) >= 4  # API server, resource tracker, EngineCore, Worker
    shown = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
    assert "vllm.entrypoints.openai.api_server" in shown and life.server.api_key not in shown
    log = (life.server.launch.logs / LOG_NAME).read_text(encoding="utf-8")
    assert "non-default args" in log and life.server.api_key not in log
    assert all(life.server.api_key not in line for line in life.server.log_tail(2000))


async def test_stop_leaves_nothing(life: Life) -> None:
    members = tree(life.server.pid)
    segments = _shared_memory(members)
    assert segments and all(segment.exists() for segment in segments)
    await life.server.stop()
    assert not alive(members) and life.server.exited
    assert not [segment for segment in segments if segment.exists()]


def _shared_memory(pids: set[int]) -> set[Path]:
    """The files in /dev/shm that these processes have mapped."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return {Path(line.split()[-1]) for line in lines if "/dev/shm/psm_" in line and not line.endswith("(deleted)")}


APPLICATION = """
import asyncio, sys
from pathlib import Path
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.server import Server
from kimi_demo.settings import Settings

async def main(model, data):
    launch = Launch.from_settings(Settings(_env_file=None, data=Path(data), max_model_len=2048), model)
    begun = []

    def on_event(event):
        if event.name == "server.kv_cache":  # the model is loaded, and every process is there
            print(begun[0].pid, flush=True)

    await Server.start(launch, on_event, on_begun=begun.append)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


def test_an_application_killed_together_with_vllms_api_server_leaves_nothing(standin_model: Path, tmp_path: Path) -> None:
    application = subprocess.Popen(
        [sys.executable, "-c", APPLICATION, str(standin_model), str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert application.stdout is not None
    api_server = int(application.stdout.readline())
    members = tree(application.pid)
    assert api_server in members and len(members) >= 6  # also the application and its guardian
    segments = _shared_memory(members)
    assert segments
    application.kill()
    os.kill(api_server, 9)  # EngineCore and Worker would outlive it
    application.wait()
    application.stdout.close()
    assert until(lambda: not alive(members), 12)
    assert not [segment for segment in segments if segment.exists()]

"""Measures the demo's engines on this machine and writes JSON: python -m scripts.gpu.main --json gpu.json --budget 600

Parts, each in a process of its own, so that what goes wrong in one stops no other: the stand-in in process and served, Kimi K2.5's shape
(random weights, as many layers as fit) in process and served. A part that the budget has no room for is said to be not run.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kimi_demo.engines.accelerators import gpus  # noqa: E402
from kimi_demo.settings import Settings  # noqa: E402
from scripts.gpu.older_vllm import fit_to_installed  # noqa: E402

PARTS = ("standin-offline", "shape-offline", "standin-served", "shape-served")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--json", type=Path, required=True, metavar="FILE", help="where the figures go")
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    add("--budget", type=float, default=3600.0, metavar="S", help="seconds for all parts together")
    add("--least", type=float, default=90.0, metavar="S", help="a part is not begun with less than this left")
    add("--limit", type=float, default=900.0, metavar="S", help="seconds that one part may take")
    add("--data", type=Path, default=Path("data"), help="data folder: the stand-in and the shape go there")
    add("--tensor-parallel-size", type=int, default=1)
    add("--max-model-len", type=int, default=8192)
    add("--vllm-args", default="")
    add("--rows", type=int, nargs="+", default=[1, 64, 256])
    add("--streams", type=int, nargs="+", default=[1, 16, 64])
    add("--tokens", type=int, default=256, help="most tokens of a reply")
    add("--pairs", type=int, default=5, help="pairs of batch and LLM.chat")
    add("--pair-rows", type=int, default=1000)
    add("--pair-tokens", type=int, default=64)
    add("--bits", type=int, default=4, choices=(4, 16), help="of the shape's experts")
    add("--layers", type=int, help="of the shape (default: as many as the plan says fit)")
    add("--tiny", action="store_true", help="the shape that a CPU computes")
    add("--part", choices=PARTS, help=argparse.SUPPRESS)
    return parser


def main() -> int:
    given = _parser().parse_args()
    if given.part:
        told = asyncio.run(_part(given))
        given.json.write_text(json.dumps(told), encoding="utf-8")
        return 1 if "error" in told else 0
    began, found, failed = time.monotonic(), {}, False
    for part in given.parts:
        left = given.budget - (time.monotonic() - began)
        if left < given.least:
            found[part] = {"not_run": f"{left:.0f} s were left"}
        else:
            found[part] = _in_child(part, given.json, min(left, given.limit))
        failed |= "error" in found[part]
        text = json.dumps({"date": time.strftime("%Y-%m-%d"), "arguments": _shown(given), "parts": found}, indent=1)
        given.json.write_text(text, encoding="utf-8")  # after each part: what is measured is kept whatever comes
        print(f"{time.monotonic() - began:6.0f} s  {part}: {found[part].get('error') or found[part].get('not_run') or 'done'}", flush=True)
    return 1 if failed else 0


def _in_child(part: str, file: Path, limit_s: float) -> dict[str, Any]:
    answer = file.with_suffix(f".{part}.json")
    answer.unlink(missing_ok=True)
    line = [sys.executable, "-m", "scripts.gpu.main", *sys.argv[1:], "--part", part, "--json", str(answer)]
    began = time.monotonic()
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        try:
            printed, _ = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            child.kill()  # vLLM's processes go with it: the guardian ends them
            printed, _ = child.communicate()
            return {"error": f"not done after {limit_s:.0f} s", "printed": printed[-4000:]}
    if not answer.exists():
        return {"error": f"ended with {child.returncode}", "printed": printed[-6000:]}
    told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    answer.unlink()
    return told | {"wall_s": round(time.monotonic() - began, 1)} | ({"printed": printed[-3000:]} if "error" in told else {})


async def _part(given: argparse.Namespace) -> dict[str, Any]:
    version = fit_to_installed()
    model, way = given.part.split("-")
    folder, about, settings = (_shape if model == "shape" else _stand_in)(given)
    if way == "offline":
        from scripts.gpu import offline

        pairs = given.pairs if model == "standin" else 0
        told = await offline.measure(
            settings,
            folder,
            rows=given.rows,
            tokens=given.tokens,
            pairs=pairs,
            pair_rows=given.pair_rows,
            pair_tokens=given.pair_tokens,
            again=model == "standin",
        )
    else:
        from scripts.gpu import served

        told = await served.measure(settings, folder, counts=given.streams, tokens=given.tokens, with_page=True)
    return {"vllm": version, **about, **told}


def _settings(given: argparse.Namespace, **more: Any) -> Settings:
    return Settings(
        _env_file=None,
        data=given.data,
        tensor_parallel_size=given.tensor_parallel_size,
        max_model_len=given.max_model_len,
        **more,
    )


def _stand_in(given: argparse.Namespace) -> tuple[str, dict[str, Any], Settings]:
    from kimi_demo.engines.rehearsal.build import build, cache_folder

    folder = str(build(cache_folder(given.data.resolve())))
    return folder, {}, _settings(given, vllm_args=given.vllm_args)


def _shape(given: argparse.Namespace) -> tuple[str, dict[str, Any], Settings]:
    from kimi_demo.engines.kimi_shape import DUMMY, FULL, TINY, most_layers, write
    from kimi_demo.engines.plan.layout import Layout
    from kimi_demo.engines.plan.machines import this_machine

    folder = given.data.resolve() / "shape"
    arguments = " ".join([*DUMMY, given.vllm_args]).strip()
    settings = _settings(given, model=str(folder), vllm_args=arguments)
    shape = TINY if given.tiny else replace(FULL, bits=given.bits)
    there = this_machine(gpus())
    if given.layers:
        shape = replace(shape, layers=given.layers)
    elif there is not None:
        layout = Layout(settings.tp, context=settings.max_model_len, utilization=settings.gpu_memory_utilization)
        shape = replace(shape, layers=most_layers(shape, there, layout))
    write(folder, shape)
    return str(folder), {"shape": vars(shape)}, settings


def _shown(given: argparse.Namespace) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items() if name != "part"}


if __name__ == "__main__":
    sys.exit(main())

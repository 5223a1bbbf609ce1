"""vLLM's arguments as a plan reads them, and what of Kimi's flags is missing."""

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.plan.arguments import layout_of, missing_flags
from kimi_demo.engines.plan.known import known_shape
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.shape import shape_of
from tests.engines.plan.configs import LLAMA_3_70B


def test_what_changes_memory_is_read_and_the_rest_passed_over() -> None:
    line = "--model x --tensor-parallel-size 8 -pp=2 --max_model_len 32k --kv-cache-dtype=fp8 --seed 4 --gpu-memory-utilization 0.9 -O3"
    assert layout_of(line.split()) == Layout(tensor=8, pipeline=2, context=32_000, kv_dtype="fp8", utilization=0.9)
    assert layout_of(["--max-model-len", "32K"]).context == 32_768
    assert layout_of(["--language-model-only", "--mm-encoder-tp-mode", "data"]) == Layout(language_only=True, vision_replicated=True)


def test_the_last_of_several_wins_and_the_rest_stays() -> None:
    assert layout_of(["-tp", "2", "--tensor-parallel-size", "4"], Layout(context=1)) == Layout(tensor=4, context=1)
    assert layout_of([]) == Layout()


@pytest.mark.parametrize(
    "line", ["-tp 0", "-tp -1", "-tp eight", "-tp ²", "--max-model-len 9999999999999", "--gpu-memory-utilization 1.1", "-tp"]
)
def test_sizes_that_are_none(line: str) -> None:
    with pytest.raises(Failure) as failed:
        layout_of(line.split())
    assert failed.value.code == "server.argument_wrong"


def test_flags_that_a_kimi_server_needs() -> None:
    k25 = known_shape("K2.5")
    assert k25 is not None
    everything = "--reasoning-parser kimi_k2 --tool-call-parser=kimi_k2 --enable_auto_tool_choice --trust-remote-code".split()
    assert missing_flags(everything, k25) == []
    told = [remark.params["flag"] for remark in missing_flags([*everything[:3], "--tool-call-parser", "hermes"], k25)]
    assert told == ["--tool-call-parser kimi_k2", "--enable-auto-tool-choice", "--trust-remote-code"]
    assert len(missing_flags([], k25)) == 4
    assert missing_flags([], shape_of(LLAMA_3_70B)) == []

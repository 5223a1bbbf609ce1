"""vLLM's command line, as far as a plan depends on it: to a `Layout`, and what of Kimi's flags is missing. Pure, no vllm import."""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.remark import Remark
from kimi_demo.engines.plan.shape import ModelShape

PARSER = "kimi_k2"

_SIZES = {
    "tensor": ("--tensor-parallel-size", "-tp"),
    "pipeline": ("--pipeline-parallel-size", "-pp"),
    "data": ("--data-parallel-size", "-dp"),
    "decode_context": ("--decode-context-parallel-size", "-dcp"),
    "context": ("--max-model-len",),
    "sequences": ("--max-num-seqs",),
    "batched_tokens": ("--max-num-batched-tokens",),
    "block": ("--block-size",),
}
_UNITS = {"k": 10**3, "m": 10**6, "K": 2**10, "M": 2**20}
"""vLLM takes "32k" and "32K" for lengths (0.32, engine/arg_utils.py `human_readable_int`)."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Failure("server.argument_wrong", reason=message, log="", model="")


def layout_of(arguments: Sequence[str], start: Layout | None = None) -> Layout:
    """`start` with what `arguments` change; what no plan depends on is passed over. The last of several wins, as in vLLM.

    Raises Failure("server.argument_wrong", reason=…) for a size that is no number above zero.
    """
    given, _ = _parser().parse_known_args([_dashed(argument) for argument in arguments])
    changed: dict[str, Any] = {name: value for name, value in vars(given).items() if value is not None}
    if changed.pop("encoder_mode", "weights") == "data":
        changed["vision_replicated"] = True
    return Layout(**(vars(start or Layout()) | changed))


def missing_flags(arguments: Sequence[str], shape: ModelShape) -> list[Remark]:
    """What a server of a Kimi model needs and `arguments` do not say: without it thoughts or tool calls come back as raw text."""
    if not shape.kimi:
        return []
    given, _ = _flags().parse_known_args([_dashed(argument) for argument in arguments])
    wanted = []
    if given.reasoning_parser != PARSER:
        wanted.append(f"--reasoning-parser {PARSER}")
    if given.tool_call_parser != PARSER:
        wanted.append(f"--tool-call-parser {PARSER}")
    if not given.auto_tool_choice:
        wanted.append("--enable-auto-tool-choice")
    if not given.trust_remote_code:
        wanted.append("--trust-remote-code")
    return [Remark("flag_missing", {"flag": flag}) for flag in wanted]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name, flags in _SIZES.items():
        parser.add_argument(*flags, dest=name, type=_size)
    parser.add_argument("--gpu-memory-utilization", dest="utilization", type=_share)
    parser.add_argument("--kv-cache-dtype", dest="kv_dtype", choices=("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"))
    parser.add_argument("--language-model-only", dest="language_only", action="store_true", default=None)
    parser.add_argument("--mm-encoder-tp-mode", dest="encoder_mode")
    return parser


def _flags() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--reasoning-parser")
    parser.add_argument("--tool-call-parser")
    parser.add_argument("--enable-auto-tool-choice", dest="auto_tool_choice", action=argparse.BooleanOptionalAction)
    parser.add_argument("--trust-remote-code", action=argparse.BooleanOptionalAction)
    return parser


def _dashed(argument: str) -> str:
    """vLLM takes "_" for "-" in the names of arguments."""
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value if argument.startswith("--") else argument


def _size(text: str) -> int:
    unit = _UNITS.get(text[-1:], 1)
    digits = text[:-1] if text[-1:] in _UNITS else text
    if not digits.isascii() or not digits.isdigit() or not 0 < int(digits[:12]) * unit < 2**40 or len(digits) > 12:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number above zero")
    return int(digits) * unit


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no share between 0 and 1")
    return share

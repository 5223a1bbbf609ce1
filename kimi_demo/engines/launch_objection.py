"""What vLLM's own parser has against a launch, and which field of the form it is about."""

import shlex
from dataclasses import dataclass

from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.vllm_parser import VllmParser


@dataclass(frozen=True)
class Objection:
    """field: of `LaunchOptions`; words: vLLM's, in English."""

    field: str
    words: str


def needs_parser(options: LaunchOptions) -> bool:
    """Whether the form holds text that only vLLM can judge; everything else in it is chosen from what vLLM takes."""
    return bool(options.extra or options.speculative)


async def objection(parser: VllmParser, launch: Launch, options: LaunchOptions) -> Objection | None:
    """Asks vLLM about the whole line of `launch`, which was made from `options`. None: it would take it.

    Raises Failure: server.no_vllm, server.parser.
    """
    words = await parser.refused(launch.command()[3:])
    return None if words is None else Objection(field_of(words, options), words)


def field_of(words: str, options: LaunchOptions) -> str:
    """The field that vLLM's words are about. Numbers and choices of the form are right by then: only free text is left.

    vLLM also takes the beginning of a flag, and "_" for "-".
    """
    given = [word.partition("=")[0].replace("_", "-") for word in shlex.split(options.extra) if word.startswith("-")]
    by_extra = any(name == "-sc" or "--speculative-config".startswith(name) for name in given)
    return "speculative" if "--speculative-config" in words and options.speculative and not by_extra else "extra"

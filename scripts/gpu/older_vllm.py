"""What differs in vLLM 0.25 from the 0.32 that the package is written for: one thing. For GPU machines whose torch is too old for 0.32.

Held against 0.25.1's sources and run there: its server takes the demo's launch line as it is, and its log has the same phases.
"""

import os
from typing import Any

from kimi_demo.engines import offline_launch, offline_loading
from kimi_demo.engines.availability import find_vllm

_LOG_FILE_SINCE = (0, 32)
"""From here on, at the latest, `LLM` takes `log_config_file`; before, the same file is named by a variable, read when vllm is imported."""


def fit_to_installed() -> str:
    """Makes the in-process engine loadable in the installed vLLM; returns its version ("" for none). Before `vllm` is imported."""
    build = find_vllm()
    if build is None:
        return ""
    if _numbers(build.version) < _LOG_FILE_SINCE:
        offline_loading.llm_arguments = _arguments_of_old  # type: ignore[attr-defined]
    return build.version


def _arguments_of_old(*given: Any, **named: Any) -> dict[str, Any]:
    arguments = offline_launch.llm_arguments(*given, **named)
    os.environ["VLLM_LOGGING_CONFIG_PATH"] = str(arguments.pop("log_config_file"))
    return arguments


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])

"""Why the server did not start or ended, in plain words: from what is on the disk before it is started, and from its log afterwards."""

import re
import signal
from collections.abc import Callable, Iterable, Sequence

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import find_vllm
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.offline_checks import CORE_OVERHEAD, GIB, RANK_OVERHEAD, weights_size
from kimi_demo.engines.offline_log import message

PORT_TAKEN = "server.port_taken"

_API_OVERHEAD = int(0.8 * GIB)
"""Memory of the API server process: 0.75 GB resident, as measured."""

_SHOWN_LINES = 12
_LONGEST_REASON = 300

_NO_REASON = re.compile(
    r"See root cause above|See stack trace|^\s(?!\s+(?:Value error|Assertion failed), )|^Traceback|^The above exception|^During handling"
    r"|nanobind|leaked |Warning: |Found ulimit of |warnings\.warn|validation errors? for |For further information visit|^INFO: |^usage: "
    r"|^See https|^Route: |^Available routes|\[shutdown\]|^Received request |^Added request |^Request \S+ failed \(engine dead\)"
    r"|^AsyncLLM output_handler failed|^Error in chat completion stream|^Error in completion stream|^Parent process exited"
)
"""Lines that name no reason: frames, sequels, what is said on the way out."""

_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit): \S|^\s+(?:Value error|Assertion failed), ")


def check_before(launch: Launch, free_memory: int) -> None:
    """Raises the Failure that a start would end in, where that is certain before it is tried. free_memory: bytes, of the host.

    Codes: server.no_vllm, model.path_missing, server.no_model, server.too_little_memory.
    """
    if find_vllm() is None:
        raise Failure("server.no_vllm")
    folder = launch.folder
    if folder is None:
        if launch.looks_like_path:
            raise Failure("model.path_missing", path=launch.model)
        return
    if not (folder / "config.json").is_file():
        raise Failure("server.no_model", path=folder)
    if launch.on_cpu:
        ranks = launch.tensor_parallel_size
        needed = weights_size(folder) + _API_OVERHEAD + CORE_OVERHEAD + ranks * (RANK_OVERHEAD + launch.cpu_kv_cache_gb * GIB)
        if needed > free_memory:
            raise Failure("server.too_little_memory", needed=f"{needed / GIB:.1f}", free=f"{free_memory / GIB:.1f}")


_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], Failure]]

_RULES: tuple[_Rule, ...] = tuple(
    (re.compile(pattern), failure)
    for pattern, failure in (
        (r"Address already in use", lambda m: Failure(PORT_TAKEN)),
        (r"error: unrecognized arguments: (.+)", lambda m: Failure("server.argument_unknown", argument=m[1])),
        (r"error: (argument .+|ambiguous option.+|the following arguments .+)", lambda m: Failure("server.argument_wrong", reason=m[1])),
        (r"(invalid (?:tool call|reasoning) parser: \S+)", lambda m: Failure("server.argument_wrong", reason=m[1])),
        (
            r"attention heads \((\d+)\) must be divisible by tensor parallel size \((\d+)\)",
            lambda m: Failure("server.heads", heads=m[1], size=m[2]),
        ),
        (
            r"World size \((\d+)\) is larger than the number of available GPUs \((\d+)\)",
            lambda m: Failure("accelerators.too_few", needed=m[1], found=m[2]),
        ),
        (
            r"max_model_len \((\d+)\) is greater than the derived max_model_len \(max_position_embeddings=([\d.]+)",
            lambda m: Failure("server.context_beyond_model", asked=m[1], most=int(float(m[2]))),
        ),
        (
            r"max seq len \((\d+)\).*the estimated maximum model length is (\d+)",
            lambda m: Failure("server.context_memory", asked=m[1], fits=m[2]),
        ),
        (
            r"max seq len \(\d+\).*larger than the available KV cache|No available memory for the cache blocks",
            lambda m: Failure("server.context_no_memory"),
        ),
        (
            r"\(([\d.]+)/[\d.]+ GiB\) on kv cache allocation is less than requested memory for kv \(([\d.]+)",
            lambda m: Failure("server.too_little_memory", needed=m[2], free=m[1]),
        ),
        (
            r"(Free memory on device .* is less than desired GPU memory utilization|(?:CUDA|HIP) out of memory[^.]*\.)",
            lambda m: Failure("server.gpu_memory", reason=m[1]),
        ),
        (r"OutOfMemoryError: (.{0,200})", lambda m: Failure("server.gpu_memory", reason=m[1])),
        (r"(?:^|\s)MemoryError|Cannot allocate memory|can't allocate memory", lambda m: Failure("server.out_of_memory")),
        (r"Failed core proc\(s\): \{[^}]*: -9\b", lambda m: Failure("server.out_of_memory")),
        (r"Cannot find any model weights with `([^`]+)`", lambda m: Failure("server.no_weights", path=m[1])),
        (
            r"Repo id must be in the form|Invalid repository ID|is not a valid model identifier|Repository Not Found|404 Client Error",
            lambda m: Failure("server.hub_unknown_model"),
        ),
        (
            r"LocalEntryNotFoundError|couldn't connect to|MaxRetryError|ConnectError|NameResolutionError|traffic has been disabled",
            lambda m: Failure("server.hub_unreachable"),
        ),
        (r"gated repo|401 Client Error|403 Client Error", lambda m: Failure("server.hub_gated")),
        (r"Failed to infer device type|No CUDA GPUs are available|libcuda\.so", lambda m: Failure("server.no_gpu")),
        (r"Error while deserializing header|SafetensorError|incomplete metadata", lambda m: Failure("server.broken_weights")),
        (r"No space left on device", lambda m: Failure("server.disk_full")),
    )
)


def explain(lines: Iterable[str], exit_code: int, model: str) -> Failure:
    """Why the server ended before it was ready, from its log and exit code (negative: the signal that ended it).

    Every Failure has `model` and `log`, the last meaningful lines; "server.exited" (no known reason) has `reason`, the likeliest line.
    """
    told = [message(line) for line in lines]
    shown = excerpt(told)
    for line in told:
        for pattern, failure in _RULES:
            if match := pattern.search(line):
                found = failure(match)
                return Failure(found.code, **found.params, model=model, log=shown)
    if exit_code == -signal.SIGKILL:
        return Failure("server.killed", model=model, log=shown)
    return Failure("server.exited", status=status(exit_code), reason=reason_in(told), model=model, log=shown)


def died(lines: Iterable[str], exit_code: int) -> Failure:
    """Why a server ended that had been ready: Failure("server.died", exit_code=…, last=…, log=…), or with the same parameters
    "server.engine_gone", where its engine's process ended first and said nothing: killed from outside, most often for memory."""
    found = list(lines)
    gone = next((at for at, line in enumerate(found) if _ENGINE_GONE.search(line)), None)
    if gone is not None:
        # What the engine said before; what the API server says afterwards is a consequence.
        words = [message(line) for line in found[max(0, gone - _BEFORE_THE_END) : gone + 1] if _ENGINE_SAYS.match(line)]
        reason = next((line for line in meaningful(words) if _EXCEPTION.match(line)), None)
        shown = excerpt([message(line) for line in found[: gone + 1]])
        if reason is None:
            return Failure("server.engine_gone", exit_code=status(exit_code), last=message(found[gone]), log=shown)
        return Failure("server.died", exit_code=status(exit_code), last=" ".join(reason.split())[:_LONGEST_REASON], log=shown)
    told = [message(line) for line in found]
    return Failure("server.died", exit_code=status(exit_code), last=reason_in(told[-_BEFORE_THE_END:]), log=excerpt(told))


_ENGINE_GONE = re.compile(r"engine core exited unexpectedly|Worker proc \S+ died unexpectedly")
_ENGINE_SAYS = re.compile(r"^\((?:EngineCore|Worker)[^)]*\) (?:ERROR|CRITICAL) ")
_BEFORE_THE_END = 200
"""Lines. An exception that is further back belonged to a request that has long been answered."""


def excerpt(lines: Iterable[str]) -> str:
    """The last meaningful lines, for showing."""
    return "\n".join(line.strip()[:_LONGEST_REASON] for line in meaningful(lines)[-_SHOWN_LINES:])


def meaningful(lines: Iterable[str]) -> list[str]:
    """`lines` without stack frames, blank rests, and what vLLM and Python say on the way out."""
    return [line for line in lines if line.strip() and not _NO_REASON.search(line)]


def reason_in(lines: Sequence[str]) -> str:
    """The line that most likely names the reason: the first exception (later ones follow from it), else the last meaningful line."""
    useful = meaningful(lines)
    found = next((line for line in useful if _EXCEPTION.match(line)), useful[-1] if useful else "?")
    return " ".join(found.split())[:_LONGEST_REASON]


def status(exit_code: int) -> str:
    """The exit code, or the name of the signal that ended the process: "1", "SIGSEGV"."""
    if exit_code >= 0:
        return str(exit_code)
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"

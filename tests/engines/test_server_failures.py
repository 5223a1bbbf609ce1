from dataclasses import replace
from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines import server_failures
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.server_failures import check_before, died, explain
from kimi_demo.engines.server_log import Lines
from kimi_demo.ui.texts import LANGUAGES, texts

LOGS = Path(__file__).parent / "logs"
GIB = 2**30


def explained(log: str, exit_code: int = 1) -> Failure:
    return explain(Lines().feed((LOGS / f"{log}.log").read_bytes(), last=True), exit_code, "owner/model")


@pytest.mark.parametrize(
    ("log", "code", "params"),
    [
        ("unknown-argument", "server.argument_unknown", {"argument": "--max-modle-len"}),
        ("unknown-parser", "server.argument_wrong", {"reason": "invalid tool call parser: kimi_k25"}),
        (
            "wrong-value",
            "server.argument_wrong",
            {"reason": "argument --max-model-len: invalid human_readable_int_or_auto value: 'abc'"},
        ),
        ("heads", "server.heads", {"heads": "9", "size": "2"}),
        ("context-beyond-model", "server.context_beyond_model", {"asked": "100000", "most": "8192"}),
        ("no-such-folder", "server.hub_unknown_model", {}),
        ("no-config", "server.hub_unknown_model", {}),
        ("no-weights", "server.no_weights", {"path": "/models/no-weights"}),
        ("hub-unreachable", "server.hub_unreachable", {}),
        ("port-taken", "server.port_taken", {}),
        ("memory", "server.too_little_memory", {"needed": "400.0", "free": "9.18"}),
    ],
)
def test_what_real_logs_of_failed_starts_mean(log: str, code: str, params: dict[str, str]) -> None:
    failure = explained(log)
    shown = failure.params.pop("log")
    assert failure.code == code and failure.params == params | {"model": "owner/model"}
    assert 1 <= len(shown.splitlines()) <= 12 and "Traceback" not in shown and "Warning" not in shown
    for language in LANGUAGES:
        assert all(texts(language).failure(failure.code, failure.params))


@pytest.mark.parametrize(
    ("line", "code", "params"),
    [
        # as vLLM 0.32's source words them; they need GPUs
        (
            "ValueError: World size (8) is larger than the number of available GPUs (2) in this node. If this is intentional",
            "accelerators.too_few",
            {"needed": "8", "found": "2"},
        ),
        (
            "ValueError: Free memory on device cuda:0 (3.1/139.8 GiB) on startup is less than desired GPU memory utilization (0.92, …",
            "server.gpu_memory",
            {"reason": "Free memory on device cuda:0 (3.1/139.8 GiB) on startup is less than desired GPU memory utilization"},
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB",
            "server.gpu_memory",
            {"reason": "CUDA out of memory."},
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (262144), (18.4 GiB KV cache is needed, which is "
            "larger than the available KV cache memory (9.1 GiB). Based on the available memory, "
            "the estimated maximum model length is 129600. Try increasing",
            "server.context_memory",
            {"asked": "262144", "fits": "129600"},
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing", "server.context_no_memory", {}),
        ("RuntimeError: Engine core initialization failed. … Failed core proc(s): {'EngineCore': -9}", "server.out_of_memory", {}),
        ("RuntimeError: Failed to infer device type, please set the environment variable", "server.no_gpu", {}),
        ("OSError: [Errno 28] No space left on device: '/psm_1'", "server.disk_full", {}),
        ("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata", "server.broken_weights", {}),
    ],
)
def test_what_other_lines_mean(line: str, code: str, params: dict[str, str]) -> None:
    failure = explain(["(EngineCore pid=7) ERROR 11-30 16:05:36 [core.py:1510] " + line, "RuntimeError: something else"], 1, "m")
    del failure.params["log"]
    assert failure.code == code and failure.params == params | {"model": "m"}
    for language in LANGUAGES:
        assert all(texts(language).failure(failure.code, failure.params))


def test_the_first_exception_is_the_reason_where_no_rule_knows_it() -> None:
    lines = [
        "(APIServer pid=1) INFO 11-30 16:01:17 [model.py:733] Resolved architecture: LlamaForCausalLM",
        "(EngineCore pid=2) ERROR 11-30 16:01:17 [core.py:1510] Traceback (most recent call last):",
        '(EngineCore pid=2) ERROR 11-30 16:01:17 [core.py:1510]   File "/opt/core.py", line 9, in run',
        "(EngineCore pid=2) ERROR 11-30 16:01:17 [core.py:1510] quantization.KernelError: no kernel   for group 32",
        "Traceback (most recent call last):",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
        "  warnings.warn('resource_tracker: There appear to be %d '",
    ]
    failure = explain(lines, 1, "m")
    assert failure.code == "server.exited"
    assert failure.params["reason"] == "quantization.KernelError: no kernel for group 32" and failure.params["status"] == "1"
    assert failure.params["log"].splitlines() == [
        "Resolved architecture: LlamaForCausalLM",
        "quantization.KernelError: no kernel   for group 32",
    ]


def test_a_signal_has_its_name_and_a_kill_its_own_words() -> None:
    assert explain([], -11, "m").params["status"] == "SIGSEGV"
    assert explain([], -9, "m").code == "server.killed"
    assert explain(["last words"], 0, "m").params["reason"] == "last words"


def test_the_end_of_a_server_that_was_ready() -> None:
    failure = died(["vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."], -9)
    assert failure.code == "server.died" and failure.params["exit_code"] == "SIGKILL"
    assert "EngineCore encountered an issue" in failure.params["last"]
    for language in LANGUAGES:
        assert all(texts(language).failure(failure.code, failure.params))


def test_last_words_are_not_the_list_of_routes() -> None:
    lines = Lines().feed((LOGS / "cpu-start.log").read_bytes(), last=True)
    assert any("Route:" in line for line in lines[-5:])
    assert died(lines, -9).params["last"].startswith("Starting vLLM server on http://")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(GIB)
    return tmp_path


def test_too_little_memory_is_said_before_the_start(folder: Path) -> None:
    launch = Launch(str(folder), folder, cpu_kv_cache_gb=2)
    with pytest.raises(Failure) as refused:
        check_before(launch, 5 * GIB)
    assert refused.value.code == "server.too_little_memory" and refused.value.params == {"needed": "5.4", "free": "5.0"}
    check_before(launch, 6 * GIB)
    with pytest.raises(Failure):
        check_before(replace(launch, tensor_parallel_size=2), 6 * GIB)
    check_before(replace(launch, on_cpu=False), 0)


def test_a_model_that_is_not_there_is_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(Failure) as missing:
        check_before(Launch("/models/none", tmp_path), 99 * GIB)
    assert (missing.value.code, missing.value.params) == ("model.path_missing", {"path": "/models/none"})
    with pytest.raises(Failure) as empty:
        check_before(Launch(str(tmp_path), tmp_path), 99 * GIB)
    assert (empty.value.code, empty.value.params) == ("server.no_model", {"path": str(tmp_path)})
    check_before(Launch("owner/model", tmp_path), 0)


def test_without_vllm_nothing_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_failures, "find_vllm", lambda: None)
    with pytest.raises(Failure, match=r"server\.no_vllm"):
        check_before(Launch(str(folder), folder), 99 * GIB)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_failure_of_the_server_has_words(language: str) -> None:
    source = Path(server_failures.__file__).read_text(encoding="utf-8")
    codes = {word for word in source.split('"') if word.startswith("server.") and " " not in word}
    assert len(codes) > 15
    for code in codes:
        words = texts(language).strings
        assert words[f"failure.{code}.what"] and words[f"failure.{code}.hint"]


def test_an_engine_that_was_killed_is_named_and_not_what_the_api_server_says_of_it() -> None:
    """A real log: kill -9 of EngineCore while a reply was being written."""
    lines = Lines().feed((LOGS / "core-killed.log").read_bytes(), last=True)
    failure = died(lines, 0)
    assert failure.code == "server.engine_gone" and failure.params["exit_code"] == "0"
    assert "Route:" not in failure.params["log"] and "Traceback" not in failure.params["log"]
    for language in LANGUAGES:
        what, hint = texts(language).failure(failure.code, failure.params)
        assert what and "operator" in hint


def test_an_engine_that_said_why_is_heard() -> None:
    lines = Lines().feed((LOGS / "core-killed.log").read_bytes(), last=True)
    at = next(number for number, line in enumerate(lines) if "engine core exited" in line)
    said = "(EngineCore pid=7) ERROR 11-30 19:46:26 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."
    failure = died([*lines[:at], said, *lines[at:]], 1)
    assert failure.code == "server.died" and failure.params["last"].startswith("torch.OutOfMemoryError")


def test_an_exception_of_long_ago_is_not_why_a_server_ended() -> None:
    old = ["ValueError: of a request that was answered", *(f"line {number}" for number in range(300)), "RuntimeError: the end"]
    assert died(old, 1).params["last"] == "RuntimeError: the end"

"""`plan` as a person and a program meet it."""

import json
from pathlib import Path
from typing import Any

import pytest

from kimi_demo import cli
from tests import local_hub
from tests.engines.plan.configs import LLAMA_2_7B
from tests.programs import running

K25 = ("plan", "--model", "moonshotai/Kimi-K2.5")
H200 = (*K25, "--gpus", "8", "--gpu-memory-gb", "141", "--max-model-len", "8192")


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = cli.main([*arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return code, found


def test_eight_h200_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = figures(capsys, *H200)
    assert code == 0 and found["fits"] is True and found["reason_code"] is None
    assert found["kv_bytes_per_token_per_gpu"] == 70_272
    assert 74 < found["weights_gb_per_gpu"] < 78
    assert found["max_concurrency"] == pytest.approx(found["kv_cache_tokens"] / 8192, rel=0.01)
    assert found["warnings"] == []
    parts = [found[f"{part}_gb_per_gpu"] for part in ("weights", "activations", "graphs", "runtime", "kv_cache")]
    assert sum(parts) == pytest.approx(141 * 0.92, abs=0.1)


def test_eight_times_eighty_gb_say_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = figures(capsys, *K25, "--gpus", "8", "--gpu-memory-gb", "80")
    assert code == 1 and found["fits"] is False and found["kv_cache_tokens"] == 0 and found["max_concurrency"] == 0
    assert "76.4 GB" in found["reason"] and "73.6 GB" in found["reason"]


def test_what_is_printed_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(list(H200)) == 0
    printed = capsys.readouterr().out
    assert "It fits." in printed and "70,272 bytes" in printed and "8,192 tokens of context" in printed
    assert cli.main([*K25, "--machine", "8xh100", "--language", "zh"]) == 1
    assert "装不下" in capsys.readouterr().out


def test_vllms_arguments_count(capsys: pytest.CaptureFixture[str]) -> None:
    _, plain = figures(capsys, *H200)
    _, split = figures(capsys, *H200, "--vllm-args", "--decode-context-parallel-size 8 --kv-cache-dtype fp8")
    assert split["kv_bytes_per_token_per_gpu"] == 70_272 / 16
    assert split["kv_cache_tokens"] == pytest.approx(16 * plain["kv_cache_tokens"], rel=0.01)
    _, wrong = figures(capsys, *H200, "--vllm-args", "--reasoning-parser deepseek_r1")
    assert "--reasoning-parser kimi_k2" in wrong["warnings"][0]


def test_the_layout_fills_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = figures(capsys, *K25, "--machine", "16xh200")
    assert (found["tensor_parallel_size"], found["pipeline_parallel_size"]) == (8, 2)
    _, found = figures(capsys, *K25, "--machine", "8xmi355x", "--data-parallel-size", "2")
    assert (found["tensor_parallel_size"], found["data_parallel_size"]) == (4, 2)


def test_a_folder_with_only_its_config(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_7B))
    code, found = figures(capsys, "plan", "--model", str(tmp_path), "--gpus", "1", "--gpu-memory-gb", "24", "--max-model-len", "4096")
    assert code == 0 and found["attention"] == "MHA" and found["weights_gb_per_gpu"] == pytest.approx(13.48, abs=0.01)


def test_the_stand_in_on_this_cpu(
    capsys: pytest.CaptureFixture[str], standin_model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    code, found = figures(capsys, "plan", "--model", str(standin_model), "--max-model-len", "2048")
    assert code == 0 and found["on_cpu"] and found["kv_bytes_per_token_per_gpu"] == 23_040
    assert cli.main(list(K25)) == 1
    assert "8xh200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "/no/such/folder"), "/no/such/folder"),
        (("--model", "x" * 5000), "There is no model at"),
        ((*K25[1:], "--gpus", "0", "--gpu-memory-gb", "80"), "--gpus"),
        ((*K25[1:], "--gpus", "8", "--gpu-memory-gb", "nan"), "--gpu-memory-gb"),
        ((*K25[1:], "--gpus", "8", "--gpu-memory-gb", "-3"), "--gpu-memory-gb"),
        ((*K25[1:], "--machine", "8xabacus"), "8xh200"),
        ((*K25[1:], "--machine", "8xh200", "--data-parallel-size", "0"), "--data-parallel-size"),
        ((*K25[1:], "--machine", "8xh200", "--vllm-args=-tp x"), "-tp"),
    ],
)
def test_bad_input_is_named_and_ends_with_2(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and "Traceback" not in printed.err and printed.out == ""


def test_a_number_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([*K25, "--gpus", "eight"])
    assert left.value.code == 2 and "--gpus" in capsys.readouterr().err


def test_several_hosts_and_what_to_run_on_each(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = figures(capsys, *K25, "--machine", "8xh100", "--hosts", "10.0.0.1,10.0.0.2")
    assert (found["gpus"], found["tensor_parallel_size"], found["pipeline_parallel_size"]) == (16, 8, 2)
    assert [node["host"] for node in found["nodes"]] == ["10.0.0.1", "10.0.0.2"]
    assert "--nnodes 2" in found["nodes"][0]["line"] and "--headless" in found["nodes"][1]["line"]
    assert "first host, port 8000;" in found["nodes_note"]
    _, found = figures(capsys, *K25, "--machine", "8xh200", "--hosts", "a,b", "--server-port", "8123")
    assert "--port 8123" in found["nodes"][0]["line"] and "first host, port 8123;" in found["nodes_note"]
    _, found = figures(capsys, *K25, "--machine", "8xh200", "--hosts", "a,b", "--way", "router")
    assert "http://127.0.0.1:8080/v1 is the base URL" in found["nodes_note"] and len(found["nodes"]) == 4
    _, found = figures(capsys, *K25, "--machine", "8xb200", "--hosts", "a b", "--way", "replicas")
    assert (found["data_parallel_size"], found["pipeline_parallel_size"], found["tensor_parallel_size"]) == (2, 1, 8)
    assert cli.main([*K25, "--machine", "16xh200", "--hosts", "a,b,c"]) == 2
    assert "2 hosts" in capsys.readouterr().err
    assert cli.main([*K25, "--machine", "8xh200", "--hosts", "a,b"]) == 0
    assert "vllm serve moonshotai/Kimi-K2.5" in capsys.readouterr().out


def test_a_folder_that_is_not_complete_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_7B))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}}))
    _, found = figures(capsys, "plan", "--model", str(tmp_path), "--gpus", "1", "--gpu-memory-gb", "24", "--max-model-len", "4096")
    assert "model-00001-of-00002.safetensors" in found["warnings"][0] and found["weights_gb_per_gpu"] == pytest.approx(13.48, abs=0.01)


@pytest.mark.parametrize("source", ["huggingface", "modelscope"])
def test_a_model_that_is_only_on_a_hub(source: str, tmp_path: Path) -> None:
    with local_hub.running(files={"config.json": json.dumps(LLAMA_2_7B).encode()}) as hub:
        where = {"HF_ENDPOINT": hub.address, "MODELSCOPE_ENDPOINT": hub.address, "HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
        command = ("-m", "kimi_demo", "plan", "--model-source", source, "--gpus", "2", "--gpu-memory-gb", "24", "--max-model-len", "4096")
        with running(*command, "--model", local_hub.MODEL, cwd=tmp_path, **where) as program:
            code, printed = program.ended(120)
        assert code == 0 and "6.7 GB" in printed, printed
        assert {path for _, path, _ in hub.requests} <= {"listing", "config.json"}
        with running(*command, "--model", "moonshotai/Other", cwd=tmp_path, **where) as program:
            code, printed = program.ended(120)
        assert code == 2 and f"could not be fetched from {source}" in printed and "Traceback" not in printed, printed

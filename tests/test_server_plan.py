"""The Server tab's answer to "will it fit", and the downloads that it shows."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.server_plan import HERE, planned, warned
from kimi_demo.server_weights import Weights, downloaded
from kimi_demo.settings import Settings
from kimi_demo.ui.texts import texts
from kimi_demo.ui.view.server_plan import plan_html
from tests import local_hub
from tests.engines.hub.models import model_files


def launch(options: LaunchOptions, model: str) -> Launch:
    return Launch.from_settings(options.applied(Settings(_env_file=None)), model)


def test_kimi_fits_on_eight_h200_and_not_on_eight_h100() -> None:
    options = LaunchOptions(tensor_parallel_size=8)
    found = planned(launch(options, "anything"), options, "8xh200", texts("en"), kimi=True)
    assert found.fits and found.kv_bytes_per_token_per_gpu == 70_272 and found.gpu_memory_utilization == 0.92
    assert not planned(launch(options, "anything"), options, "8xh100", texts("en"), kimi=True).fits
    shown = plan_html(found, texts("en"))
    assert "It fits." in shown and "srv-plan-curve" in shown and "<title>" in shown


def test_the_options_count(standin_model: Path) -> None:
    half = LaunchOptions(tensor_parallel_size=8, kv_cache_dtype="fp8")
    assert planned(launch(half, "x"), half, "8xh200", texts("en"), kimi=True).kv_bytes_per_token_per_gpu == 70_272 / 2
    long = LaunchOptions(max_model_len=100_000)  # beyond what the stand-in knows
    found = planned(launch(long, str(standin_model)), long, HERE, texts("en"))
    assert not found.fits and found.reason_code == "plan.context_beyond_model"
    with pytest.raises(Failure) as caught:
        planned(launch(long, str(standin_model)), long, "my laptop", texts("en"))
    assert caught.value.code == "plan.unknown_machine"


def test_what_can_be_known_to_go_wrong_is_said_before_a_start(standin_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(language: str = "en", *, ours: bool = False, model: str = str(standin_model), **options: Any) -> list[str]:
        chosen = LaunchOptions(**options)
        return warned(launch(chosen, model), chosen, texts(language), ours=ours)

    assert told() == []
    [heads] = told(tensor_parallel_size=2)
    assert heads.startswith("This will not start here: ") and "9 attention heads" in heads
    assert "无法启动" in told("zh", tensor_parallel_size=2)[0]
    assert [line for line in told(extra="--reasoning-parser other") if "lacks --reasoning-parser kimi_k2" in line]
    assert told(model="nobody/knows-it") == []  # what cannot be planned is left to vLLM

    # Memory that our own server gives back first is no reason against the next one.
    [memory] = told(cpu_kv_cache_gb=4096)
    assert "GB" in memory and told(cpu_kv_cache_gb=4096, ours=True) == []

    real, blocks = os.statvfs("/"), 64 * 2**20
    small = os.statvfs_result((real.f_bsize, 1, blocks, *tuple(real)[3:]))
    monkeypatch.setattr(os, "statvfs", lambda path: small)
    monkeypatch.setattr("kimi_demo.server_plan.gpus", lambda: [Gpu(at, "a GPU", f"GPU-{at}", 10**11, 10**11) for at in range(3)])
    assert [line for line in told(tensor_parallel_size=3) if "/dev/shm has only 67 MB" in line]


def test_what_is_on_the_disk_is_complete_or_not(tmp_path: Path, standin_model: Path) -> None:
    assert downloaded(tmp_path / "none") == ()
    (tmp_path / "owner").mkdir()
    (tmp_path / "owner" / "whole").symlink_to(standin_model)
    (tmp_path / "owner" / "half").mkdir()
    (tmp_path / "owner" / "half" / "config.json").write_text("{}")
    assert [(one.name, one.complete) for one in downloaded(tmp_path)] == [("owner/half", False), ("owner/whole", True)]


async def test_one_download_at_a_time_and_it_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    weights = Weights(tmp_path)
    with pytest.raises(Failure) as caught:
        weights.start("huggingface", "no name", "", "")
    assert caught.value.code == "weights.bad_name" and not weights.going
    weights.start("huggingface", "owner/name", "", "a-token")
    with pytest.raises(Failure) as caught:
        weights.start("huggingface", "owner/other", "", "")
    assert caught.value.code == "weights.busy" and caught.value.params["model"] == "owner/name"
    async with asyncio.timeout(20):
        await weights.stop()
    assert not weights.going and not weights.done and "a-token" not in repr(weights.job)


async def test_a_download_tells_how_far_it_is_and_the_model_is_there_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with local_hub.running(files=model_files()) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        hub.rate = 200_000.0
        weights = Weights(tmp_path / "models")
        weights.start("huggingface", local_hub.MODEL, "", "")
        heard = set()
        async with asyncio.timeout(60):
            while weights.going:  # noqa: ASYNC110  (whoever shows it looks)
                if weights.phase is not None:
                    heard.add(weights.phase.name)
                await asyncio.sleep(0.02)
        assert weights.failure is None and weights.done and "weights.downloading" in heard
        assert [(one.name, one.complete) for one in weights.known] == [(local_hub.MODEL, True)]
        hub.status["listing"] = 403
        weights.start("huggingface", local_hub.MODEL, "", "")
        async with asyncio.timeout(60):
            while weights.going:  # noqa: ASYNC110  (whoever shows it looks)
                await asyncio.sleep(0.02)
        assert weights.failure is not None and weights.failure.code.startswith("weights.") and not weights.done

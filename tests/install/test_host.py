"""Which installation a machine gets, and what it is told."""

from pathlib import Path

import pytest

from scripts.installer.host import Host, Kind, has_avx2, has_nvidia, kind_of


def host(
    system: str = "Linux", machine: str = "x86_64", glibc: tuple[int, ...] | None = (2, 36), nvidia: bool = False, avx2: bool = True
) -> Host:
    return Host(system, machine, glibc, nvidia, avx2)


@pytest.mark.parametrize(
    ("machine", "kind"),
    [
        (host(), Kind.CPU),
        (host(machine="aarch64", avx2=False), Kind.CPU),
        (host(nvidia=True), Kind.GPU),
        (host(machine="aarch64", nvidia=True), Kind.GPU),
    ],
)
def test_linux_gets_an_engine(machine: Host, kind: Kind) -> None:
    assert kind_of(machine) == (kind, "")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (host(system="Darwin", machine="arm64", glibc=None), ["Linux", "container", "--base-url"]),
        (host(system="Windows", machine="amd64", glibc=None), ["WSL2", "container", "--base-url"]),
        (host(machine="riscv64"), ["riscv64", "--base-url"]),
        (host(glibc=None), ["glibc", "container", "--base-url"]),
        (host(glibc=(2, 28)), ["glibc 2.28", "2.31", "--base-url"]),
        (host(avx2=False), ["AVX2", "--base-url"]),
    ],
)
def test_elsewhere_one_sentence_says_why_and_what_to_do(machine: Host, words: list[str]) -> None:
    kind, reason = kind_of(machine)
    assert kind is Kind.PAGE
    assert all(word in reason for word in words), reason
    assert reason.count(". ") == 0 and reason.endswith("."), reason


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], False),
        (["proc/driver/nvidia/version"], False),
        (["proc/driver/nvidia/gpus/0000:01:00.0/information"], True),
        (["dev/nvidiactl", "dev/nvidia-uvm"], False),
        (["dev/nvidiactl", "dev/nvidia0"], True),
        (["dev/dxg"], False),
        (["dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"], True),
    ],
)
def test_a_gpu_is_seen_by_its_driver(tmp_path: Path, files: list[str], expected: bool) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert has_nvidia(tmp_path) is expected


@pytest.mark.parametrize(("flags", "expected"), [("fpu sse2 avx avx2 fma", True), ("fpu sse2 avx", False), ("fpu avx2x", False)])
def test_avx2_is_read_from_the_processor_flags(tmp_path: Path, flags: str, expected: bool) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert has_avx2(tmp_path) is expected

"""Whether a model's folder is whole: its index against its files, and each file against what its own header promises.

Needs neither network nor vLLM, and reads only headers: 64 shards of 10 GB take milliseconds.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kimi_demo.dialect.failure import Failure

Fault = Literal["missing", "short", "long", "pointer", "unreadable", "partial"]
"""missing: named by the index, not there. short, long: not as many bytes as its header says. pointer: a Git LFS pointer instead of the
file. partial: what a download has not finished."""

_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_POINTER = b"version https://git-lfs"
_LARGEST_HEADER = 100_000_000
"""Bytes; safetensors' own limit."""
_LARGEST_INDEX = 2**28
_UNFINISHED = (".incomplete", ".part", ".aria2")
_TEMPORARY = ("._____temp", ".cache/huggingface/download", ".ms_temp")


@dataclass(frozen=True)
class Damage:
    """One file, by its path inside the folder. expected, found: bytes, None where unknown."""

    file: str
    fault: Fault
    expected: int | None = None
    found: int | None = None


@dataclass(frozen=True)
class Completeness:
    """weights: weight files that are whole. damage: what is wrong, index order."""

    weights: int
    damage: tuple[Damage, ...]

    @property
    def complete(self) -> bool:
        return not self.damage


def inspect(folder: Path) -> Completeness:
    """Looks at the weight files and config.json of `folder`. A folder without any weights is complete: that is another mistake."""
    damage: list[Damage] = []
    config = _small(folder, "config.json")
    if config is not None:
        damage.append(config)
    named, index_damage = _named(folder)
    damage += index_damage
    there = sorted(path.name for path in folder.glob("*.safetensors"))
    whole = 0
    for name in dict.fromkeys([*named, *(there if not named else [])]):
        found = _weights(folder, name)
        if found is None:
            whole += 1
        else:
            damage.append(found)
    if damage or not whole:
        damage += _unfinished(folder)
    return Completeness(whole, tuple(damage))


def require_complete(folder: Path) -> None:
    """Raises Failure("model.incomplete_<fault>", path=…, file=…, count=…, whole=…) for a folder that is not whole: the first damage,
    how many there are, and how many weight files are whole. An engine would find out after minutes, if at all in words that help.
    """
    found = inspect(folder)
    if not found.complete:
        first = found.damage[0]
        raise Failure(f"model.incomplete_{first.fault}", path=folder, file=first.file, count=len(found.damage), whole=found.weights)


def _named(folder: Path) -> tuple[list[str], list[Damage]]:
    """The files that the index names, in its order."""
    for name in _INDICES:
        path = folder / name
        if not path.is_file():
            continue
        found = _small(folder, name)
        if found is not None:
            return [], [found]
        try:
            with path.open("rb") as file:
                weights = json.loads(file.read(_LARGEST_INDEX))["weight_map"]
            files = dict.fromkeys(value for value in weights.values() if isinstance(value, str))
        except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return [], [Damage(name, "unreadable")]
        if any(Path(file).is_absolute() or ".." in Path(file).parts or "\0" in file for file in files):
            return [], [Damage(name, "unreadable")]  # an index is somebody else's file: it names files of this folder or none
        return list(files), []
    return [], []


def _weights(folder: Path, name: str) -> Damage | None:
    path = folder / name
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(8)
            if head + file.read(len(_POINTER) - len(head)) == _POINTER:
                return Damage(name, "pointer", None, size)
            if not name.endswith(".safetensors"):
                return None if size else Damage(name, "short", None, 0)
            if len(head) < 8:
                return Damage(name, "short", None, size)
            file.seek(8)
            (length,) = struct.unpack("<Q", head)
            if length > _LARGEST_HEADER:
                return Damage(name, "unreadable", None, size)
            header = file.read(length)
    except FileNotFoundError:
        return Damage(name, "missing")
    except OSError:
        return Damage(name, "unreadable")
    if len(header) < length:
        return Damage(name, "short", None, size)
    try:
        tensors = json.loads(header)
        ends = [int(tensor["data_offsets"][1]) for key, tensor in tensors.items() if key != "__metadata__"]
    except (ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
        return Damage(name, "unreadable", None, size)
    expected = 8 + length + max(ends, default=0)
    if size == expected:
        return None
    return Damage(name, "short" if size < expected else "long", expected, size)


def _small(folder: Path, name: str) -> Damage | None:
    """A JSON file that must be there and be one."""
    path = folder / name
    try:
        with path.open("rb") as file:
            beginning = file.read(_LARGEST_INDEX)
    except FileNotFoundError:
        return Damage(name, "missing")
    except OSError:
        return Damage(name, "unreadable")
    if beginning.startswith(_POINTER):
        return Damage(name, "pointer", None, len(beginning))
    try:
        json.loads(beginning)
    except (ValueError, RecursionError):
        return Damage(name, "unreadable", None, len(beginning))
    return None


def _unfinished(folder: Path) -> list[Damage]:
    """What clients leave while they download."""
    places = [folder, *(folder / name for name in _TEMPORARY)]
    found = [path for place in places if place.is_dir() for path in sorted(place.iterdir()) if path.name.endswith(_UNFINISHED)]
    found += [path for path in sorted((folder / "._____temp").rglob("*")) if path.is_file()] if (folder / "._____temp").is_dir() else []
    return [Damage(str(path.relative_to(folder)), "partial") for path in dict.fromkeys(found)]

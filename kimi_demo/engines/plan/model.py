"""The model that a plan is for: a folder, a model that is known by name, or the config.json of one on a hub."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.complete import Damage, inspect
from kimi_demo.engines.offline_checks import weights_size
from kimi_demo.engines.plan.known import K25, K25_BYTES, known_shape
from kimi_demo.engines.plan.shape import ModelShape, read_shape


@dataclass(frozen=True)
class PlannedModel:
    """on_disk: bytes of its weight files, None where only its config.json is known. damage: files that are missing or not whole."""

    name: str
    shape: ModelShape
    on_disk: int | None
    damage: tuple[Damage, ...] = ()


def find_model(name: str, fetch: Callable[[str], Path] | None = None) -> PlannedModel:
    """`name`: a folder, or "owner/name". fetch: a hub id → a folder with its config.json; without it only known models are found.

    Raises Failure: model.path_missing, those of `read_shape`, and what `fetch` raises.
    """
    try:
        folder = Path(name).expanduser()
        there = folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, ~nobody
        raise Failure("model.path_missing", path=name[:200]) from error
    if there:
        shape, found = read_shape(folder), inspect(folder)
        # Files that are there only in part say nothing of the size.
        return PlannedModel(name, shape, weights_size(folder) if found.complete and found.weights else None, found.damage)
    known = known_shape(name)
    if known is not None:
        return PlannedModel(K25, known, K25_BYTES)
    if fetch is None or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise Failure("model.path_missing", path=name)
    return PlannedModel(name, read_shape(fetch(name)), None)

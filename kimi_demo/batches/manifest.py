"""What a batch was made with, in a small file beside its results; by its fingerprint a resume knows that nothing has changed."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kimi_demo.batches.encoding import unreadable
from kimi_demo.dialect.failure import Failure

FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """input: path of the file; input_sha256: of its bytes. reading: `Source.described()`. rows: to run; columns: that travel along.

    sampling: fields of `Sampling`; selection: of a further version, which rows of which run ({"run", "which"}); {} for all.
    """

    input: str
    input_sha256: str
    reading: dict[str, Any]
    rows: int
    sampling: dict[str, Any]
    thinking: bool
    model: str
    engine: str = ""
    columns: tuple[str, ...] = ()
    selection: dict[str, str] = field(default_factory=dict)
    created_at: str = ""

    @property
    def fingerprint(self) -> str:
        """16 hex digits over everything that the results depend on; where the file lies and which engine runs it are no part."""
        text = json.dumps([FORMAT, self.decisive()], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def decisive(self) -> dict[str, Any]:
        """Flat: name → value."""
        found: dict[str, Any] = {"input": self.input_sha256, "rows": self.rows, "model": self.model, "thinking": self.thinking}
        return found | dict(self.sampling) | self.reading | self.selection

    def differences(self, other: "Manifest") -> list[str]:
        """What is decisive and not the same: "temperature: 0.6 → 1.0"."""
        mine, theirs = self.decisive(), other.decisive()
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        return ["input: another content" if name == "input" else f"{name}: {mine.get(name)} → {theirs.get(name)}" for name in names]

    def to_json(self) -> str:
        return json.dumps({"kimi_demo_batch": FORMAT, "fingerprint": self.fingerprint, **asdict(self)}, ensure_ascii=False, indent=1) + "\n"


def sidecar(results: Path) -> Path:
    """Where the manifest of `results` lies."""
    return results.with_name(results.name + ".run.json")


def read_manifest(results: Path) -> Manifest | None:
    """The manifest beside `results`; None where there is none. Raises Failure: batches.unreadable, batches.bad_manifest."""
    path = sidecar(results)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError:
        raise Failure("batches.bad_manifest", path=path) from None
    if not isinstance(found, dict) or found.pop("kimi_demo_batch", None) != FORMAT:
        raise Failure("batches.bad_manifest", path=path)
    told = found.pop("fingerprint", None)
    try:
        manifest = Manifest(**found | {"columns": tuple(found.get("columns", ()))})
        if manifest.fingerprint != told:
            raise ValueError("changed by hand")
    except (TypeError, ValueError, AttributeError):
        raise Failure("batches.bad_manifest", path=path) from None
    return manifest


def sha256_of(path: Path) -> str:
    """Of the file's bytes. Raises Failure("batches.unreadable")."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error

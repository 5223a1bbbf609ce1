"""What the operator keeps about servers, in one small file of the data folder: named profiles, addresses, how long starts took."""

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.endpoint_url import candidates
from kimi_demo.engines.launch_options import LaunchOptions

MOST_PROFILES, MOST_ADDRESSES, MOST_STARTS = 50, 20, 50
LONGEST_NAME = 60


class Start(BaseModel):
    """A start that came to its end. phases: name and seconds, in order; total: seconds; at: ISO time."""

    model_config = ConfigDict(frozen=True)

    phases: tuple[tuple[str, float], ...]
    total: float
    at: str


class _Saved(BaseModel):
    profiles: dict[str, LaunchOptions] = Field(default_factory=dict)
    addresses: list[str] = Field(default_factory=list)
    starts: dict[str, Start] = Field(default_factory=dict)


class SavedLaunches:
    """Reads the file once, writes it whole at every change (a few KB). A file that cannot be read is set aside, never overwritten."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_aside: Path | None = None
        self._saved = self._read()

    @property
    def profiles(self) -> dict[str, LaunchOptions]:
        """By name, in alphabetical order."""
        return dict(sorted(self._saved.profiles.items(), key=lambda item: item[0].casefold()))

    @property
    def addresses(self) -> list[str]:
        """Base URLs that were in use, the latest first; keys are not kept."""
        return list(self._saved.addresses)

    def save_profile(self, name: str, options: LaunchOptions) -> str:
        """Under its name, in place of one that is there; returns the name as kept.

        Raises Failure: launch.name, launch.too_many, launch.write.
        """
        name = " ".join(name.split())
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise Failure("launch.name", most=LONGEST_NAME)
        if name not in self._saved.profiles and len(self._saved.profiles) >= MOST_PROFILES:
            raise Failure("launch.too_many", most=MOST_PROFILES)
        self._write(self._saved.model_copy(update={"profiles": {**self._saved.profiles, name: options}}))
        return name

    def delete_profile(self, name: str) -> None:
        """Raises Failure: launch.unknown, launch.write."""
        self.profile(name)
        rest = {known: options for known, options in self._saved.profiles.items() if known != name}
        self._write(self._saved.model_copy(update={"profiles": rest}))

    def profile(self, name: str) -> LaunchOptions:
        """Raises Failure("launch.unknown")."""
        if name not in self._saved.profiles:
            raise Failure("launch.unknown", name=name)
        return self._saved.profiles[name]

    def add_address(self, typed: str) -> str:
        """Returns the address without what does not belong to it. Raises Failure: endpoint.url_…, launch.write."""
        candidates(typed)  # refuses what is no address, and one with a password in it
        address = typed.strip().strip("\"'").rstrip("/")
        rest = [known for known in self._saved.addresses if known != address]
        self._write(self._saved.model_copy(update={"addresses": [address, *rest][:MOST_ADDRESSES]}))
        return address

    def forget_address(self, address: str) -> None:
        rest = [known for known in self._saved.addresses if known != address]
        self._write(self._saved.model_copy(update={"addresses": rest}))

    def start_of(self, key: str) -> Start | None:
        """The last start of that model with that layout (`start_key`)."""
        return self._saved.starts.get(key)

    def keep_start(self, key: str, phases: list[tuple[str, float]], total: float) -> None:
        """Its file may be full: then the next estimate is an older one."""
        start = Start(phases=tuple(phases), total=total, at=datetime.now(UTC).isoformat(timespec="seconds"))
        rest = [(known, value) for known, value in self._saved.starts.items() if known != key]
        with suppress(Failure):
            self._write(self._saved.model_copy(update={"starts": dict([*rest, (key, start)][-MOST_STARTS:])}))

    def _read(self) -> _Saved:
        try:
            return _Saved.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _Saved()
        except (ValidationError, OSError):
            aside = self._file.with_suffix(".unreadable.json")
            with suppress(OSError):
                os.replace(self._file, aside)
                self.set_aside = aside
            return _Saved()

    def _write(self, saved: _Saved) -> None:
        """Whole or not at all, also when the power goes. Raises Failure("launch.write")."""
        temporary = ""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=f".{self._file.name}.")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(saved.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file)
        except OSError as error:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)
            raise Failure("launch.write", path=self._file, error=error.strerror or error) from None
        self._saved = saved


def start_key(model: str, *sizes: int) -> str:
    """What decides how long a start takes: the model and how it is split."""
    return " ".join([model, *(str(size) for size in sizes)])

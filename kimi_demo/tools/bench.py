"""`Bench`: which tools a visitor has on the table, and how the model may use them. Kept in a file for each visitor."""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.owners import OWNER
from kimi_demo.runs.rows import whole
from kimi_demo.tools.own import OwnTool


class Bench(BaseModel):
    """own: the visitor's tools, in the order they were made. on: switches that were moved, by the tool's name; the others stand as their
    source says. choice: "auto", "none", "required", or "tool:" and a name. parallel: whether several calls may come at once. approve:
    whether each call needs the visitor's leave."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    own: tuple[OwnTool, ...] = ()
    on: dict[str, bool] = {}
    choice: str = "auto"
    parallel: bool = True
    approve: bool = False

    def named(self, name: str) -> OwnTool | None:
        return next((tool for tool in self.own if tool.name == name), None)

    def switched(self, name: str, on: bool) -> "Bench":
        return self.model_copy(update={"on": {**self.on, name: on}})

    def without(self, name: str) -> "Bench":
        """Without an own tool, and without its switch."""
        rest = {key: value for key, value in self.on.items() if key != name}
        return self.model_copy(update={"own": tuple(tool for tool in self.own if tool.name != name), "on": rest})

    def with_tool(self, tool: OwnTool, was: str | None = None) -> "Bench":
        """With a new own tool, switched on; or with `tool` in the place of the one that was named `was`."""
        if was is None:
            return self.model_copy(update={"own": (*self.own, tool)}).switched(tool.name, True)
        on = {tool.name if key == was else key: value for key, value in self.on.items()}
        choice = f"tool:{tool.name}" if self.choice == f"tool:{was}" else self.choice
        own = tuple(tool if each.name == was else each for each in self.own)
        return self.model_copy(update={"own": own, "on": on, "choice": choice})


class Benches:
    """In `folder`, which is made when first needed. Belongs to the event loop's thread; files are written on others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changing = asyncio.Lock()

    def get(self, owner: str) -> Bench:
        """The owner's; as everyone's is at first, where there is none. Raises Failure: own_tools.unreadable (path, error).

        Read at once, a few KB: who starts a run must not wait between finding that none is going on and starting it.
        """
        path = self._path(owner)
        try:
            return Bench.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return Bench()
        except OSError as error:
            raise Failure("own_tools.unreadable", path=path, error=error.strerror or error) from error
        except ValidationError as error:
            raise Failure("own_tools.unreadable", path=path, error=error.errors()[0]["msg"]) from error

    async def change(self, owner: str, how: Callable[[Bench], Bench]) -> Bench:
        """Keeps what `how` makes of it; of several changes at once none is lost. Raises what `get` and `how` raise, and Failure:
        own_tools.unwritable (error)."""
        async with self._changing:
            bench = how(self.get(owner))
            await asyncio.to_thread(self._write, owner, bench)
            return bench

    def remove(self, owner: str) -> None:
        """What the owner has chosen and made. Blocking."""
        self._path(owner).unlink(missing_ok=True)

    def _path(self, owner: str) -> Path:
        assert OWNER.fullmatch(owner)  # Access.owner_of makes nothing else; it becomes a file's name here
        return self._folder / f"{owner}.json"

    def _write(self, owner: str, bench: Bench) -> None:
        path = self._path(owner)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(whole(bench.model_dump_json(indent=1)))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, path)  # whoever is interrupted finds the old file or the new one
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise Failure("own_tools.unwritable", error=error.strerror or error) from error

"""Which model the local engines load: the named one, or the rehearsal model, built when it is first needed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from kimi_demo.dialect.events import Event, Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.complete import require_complete
from kimi_demo.settings import Settings


class ModelFolder:
    """The path or hub id that vLLM is given. Building happens once, off the event loop; later callers wait for the same build."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._path: str | None = None

    async def path(self, on_event: Callable[[Event], None]) -> str:
        """Raises Failure("model.path_missing") for a folder that is not there, "model.incomplete_…" for one whose files are not whole,
        and Failure("rehearsal.build", …) when building fails."""
        async with self._lock:
            if self._path is None:
                self._path = await (asyncio.to_thread(self._named) if self._settings.model is not None else self._built(on_event))
            return self._path

    def _named(self) -> str:
        model = self._settings.model or ""
        try:
            folder = Path(model).expanduser()
            if folder.is_dir():
                if (folder / "config.json").is_file():  # without one it is no model at all, which the engines say
                    require_complete(folder)
                return str(folder.resolve())
        except (OSError, RuntimeError) as error:  # a folder above it that may not be read, a name that is too long; ~nobody
            raise Failure("model.path_missing", path=model) from error
        # A hub id is "owner/name"; anything else that looks like a path must exist.
        if model.startswith((".", "/", "~")) or model.count("/") != 1:
            raise Failure("model.path_missing", path=model)
        return model

    async def _built(self, on_event: Callable[[Event], None]) -> str:
        from kimi_demo.engines.rehearsal.build import build, cache_folder

        loop = asyncio.get_running_loop()

        def tell(phase: str) -> None:
            loop.call_soon_threadsafe(on_event, Phase(f"rehearsal.{phase}"))

        try:
            return str(await asyncio.to_thread(build, cache_folder(self._settings.data.resolve()), tell))
        except Failure:
            raise
        except Exception as error:  # whatever torch, transformers or the disk raised: it has one meaning here
            raise Failure("rehearsal.build", reason=f"{type(error).__name__}: {error}") from error

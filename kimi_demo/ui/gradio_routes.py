"""Which of Gradio's own routes stay open (read in `gradio/routes.py` of 6.31.0).

Below /gradio_api only what the page and API clients use is let through, so that a route which a later Gradio adds is closed
until someone decides. Closed there, and why:
  upload, upload_progress                 anyone could fill the disk; no component of ours takes files
  deep_link                               writes a visitor's component values to disk, readable by whoever has the link
  proxy=…, file=http…                     fetch addresses from the server's network
  runs, run-history/…                     a copy of every prompt kept outside our store; sends it to a bucket on request
  user, token, login_check                Gradio's own sign-in, which is not in use
  stream/…, process_recording             media streams: none here, and two need no sign-in; a recording starts ffmpeg
  component_server                        calls component methods by name; no component of ours has any
  custom_component/…                      none installed
  vibe-edit, vibe-code, … dev/reload      development tools that rewrite or reload the app
  profiling/…, mcp…                       off; would show other visitors' calls, or offer a second way in
  api/…                                   an older name of run/…
Closed outside it: login, logout (Gradio's sign-in), monitoring (who called what, and prints a key), the interactive docs of
FastAPI (they load scripts from another host), and ?deep_link= on the page and its configuration.
"""

from collections.abc import Mapping

PREFIX = "/gradio_api"

_OPEN = (
    "startup-events",  # the page, at load
    "app_id",  # the page: whether the app was restarted
    "info",  # API page and clients
    "openapi.json",
    "theme.css",
    "queue/join",
    "queue/data",
    "queue/status",
    "heartbeat/",
    "reset",
    "cancel",
    "call/",  # API clients
    "run/",  # events with queue=False
)
_CLOSED = ("/login", "/logout", "/monitoring", "/docs", "/redoc", "/openapi.json")


def is_open(path: str, query: Mapping[str, str]) -> bool:
    """Whether a request to `path` (decoded, as ASGI gives it) is passed on."""
    if "deep_link" in query:
        return False
    if not _below(path, PREFIX):
        return not any(_below(path, closed) for closed in _CLOSED)
    rest = path[len(PREFIX) :].strip("/")
    if rest.startswith("file="):  # downloads that a handler offered
        return "://" not in rest and not rest[len("file=") :].lstrip("/").lower().startswith(("http:", "https:"))
    return any(rest.startswith(known) if known.endswith("/") else rest == known for known in _OPEN)


def _below(path: str, top: str) -> bool:
    return path == top or path.startswith(top + "/")

"""What the hubs' clients raise, as Failures."""

import errno
from collections.abc import Iterator

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.job import Job

_TRANSIENT_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504))


def failure_of(error: BaseException, job: Job) -> Failure:
    """Of any exception. The message of an unknown one is shown without the token."""
    if isinstance(error, Failure):
        return error
    chain = list(_chain(error))
    told = {"model": job.model, "source": job.source}
    for link in chain:
        if isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT):
            return Failure("weights.disk_full", folder=job.folder)
        if isinstance(link, OSError) and link.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            return Failure("weights.unwritable", folder=job.folder, problem=link.strerror or link)
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    if "FileIntegrityError" in names and "FileSizeMismatchError" not in names:
        return Failure("weights.checksum", file=_file(chain))
    if "RevisionNotFoundError" in names:
        return Failure("weights.unknown_revision", revision=job.revision or "?", **told)
    statuses = [status for link in chain if (status := _status(link)) is not None]
    if "GatedRepoError" in names or 403 in statuses or names & {"PermissionDeniedError"}:
        return Failure("weights.forbidden", **told)
    if 401 in statuses or names & {"AuthenticationError"}:
        return Failure("weights.needs_token", **told)
    if 404 in statuses or names & {"RepositoryNotFoundError", "NotExistError", "EntryNotFoundError", "RemoteEntryNotFoundError"}:
        return Failure("weights.not_found", **told)
    if "HFValidationError" in names or "InvalidParameter" in names:
        return Failure("weights.bad_name", model=job.model)
    if transient(error):
        return Failure("weights.broke_off", reason=_reason(chain, job), **told)
    return Failure("weights.failed", reason=_reason(chain, job), **told)


def transient(error: BaseException) -> bool:
    """Whether it may go away by itself: the network, a busy server, a file that came short."""
    chain = list(_chain(error))
    if any(
        isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM) for link in chain
    ):
        return False
    statuses = [status for link in chain if (status := _status(link)) is not None]
    if statuses:
        return all(status in _TRANSIENT_STATUS for status in statuses)
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    if "FileIntegrityError" in names and "FileSizeMismatchError" not in names:
        return False  # the client has downloaded it several times already
    return bool(names & _TRANSIENT) or any("Consistency check failed" in str(link) for link in chain)


_TRANSIENT = frozenset(
    {
        *("TransportError", "TimeoutException", "ConnectionError", "Timeout", "ChunkedEncodingError", "IncompleteRead", "ProtocolError"),
        *("NetworkError", "RequestTimeoutError", "FileDownloadError", "FileSizeMismatchError", "LocalEntryNotFoundError"),
        *("IncompleteSnapshotError", "HTTPError"),
    }
)
"""Names in the class hierarchies of httpx2, requests, urllib3 and the two clients: by name, since importing each takes its time."""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes, and the errors of single files that it gathers."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        files = getattr(link, "failed_files", None)
        inner = list(files.values()) if isinstance(files, dict) else []
        waiting += [one for one in (link.__cause__, link.__context__, *inner) if isinstance(one, BaseException)]


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        status = getattr(holder, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return status
    return None


def _file(chain: list[BaseException]) -> str:
    for link in chain:
        files = getattr(link, "failed_files", None)
        if isinstance(files, dict) and files:
            return str(next(iter(files)))
    return "?"


def _reason(chain: list[BaseException], job: Job) -> str:
    lines = [line for link in chain for line in str(link).splitlines() if line.strip()]
    text = lines[0].strip() if lines else type(chain[0]).__name__
    if job.token is not None:
        text = text.replace(job.token.get_secret_value(), "…")
    return text[:200].rstrip(".")

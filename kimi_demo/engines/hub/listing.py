"""What a repository holds, as its hub lists it."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.hub.job import Job


@dataclass(frozen=True)
class RemoteFile:
    """path: inside the repository. size: bytes. sha256: None where the hub has none (small files of Hugging Face)."""

    path: str
    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class Listing:
    """revision: the commit that the files are of, where the hub says it; what was asked for otherwise."""

    files: tuple[RemoteFile, ...]
    revision: str | None


def list_files(job: Job) -> Listing:
    """Raises what the hub's client raises, and Failure("weights.odd_listing", file=…) for a name that would leave the folder."""
    found = _modelscope(job) if job.source == "modelscope" else _huggingface(job)
    for file in found.files:
        path = PurePosixPath(file.path)
        if not file.path or path.is_absolute() or ".." in path.parts or "\\" in file.path or "\0" in file.path or file.size < 0:
            raise Failure("weights.odd_listing", file=file.path[:100])
    return found


def _huggingface(job: Job) -> Listing:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    api = HfApi(token=_token(job))
    revision = api.repo_info(job.model, revision=job.revision).sha
    tree = api.list_repo_tree(job.model, recursive=True, revision=revision)
    files = [one for one in tree if isinstance(one, RepoFile)]
    found = (RemoteFile(one.path, one.size, one.lfs.sha256 if one.lfs is not None else None) for one in files)
    return Listing(tuple(found), revision)


def _modelscope(job: Job) -> Listing:
    from modelscope_hub import HubApi

    token = _token(job)
    endpoint = HubApi(token=token).resolve_endpoint_for_read(job.model)  # there are two, for inside and outside of China
    entries = HubApi(token=token, endpoint=endpoint).list_repo_files(job.model, "model", revision=job.revision, recursive=True)
    return Listing(tuple(RemoteFile(one.path, one.size, one.sha256) for one in entries if not one.is_dir), job.revision)


def _token(job: Job) -> str | None:
    return job.token.get_secret_value() if job.token is not None else None

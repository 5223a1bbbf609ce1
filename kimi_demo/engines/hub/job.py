"""What is to be downloaded, and the lines in which the process that does it tells how far it is."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, field_serializer

Source = Literal["huggingface", "modelscope"]


class Job(BaseModel):
    """model: "owner/name"; revision: branch, tag or commit, None for the hub's own; folder: where the files go, as they are named.

    token: for private repositories. It goes to the downloading process through its standard input: no command line, variable or file
    holds it. workers: files at a time. tries: attempts without a single byte in between, before it is given up.
    """

    model_config = ConfigDict(frozen=True)

    source: Source
    model: str = Field(max_length=200)
    folder: str
    revision: str | None = None
    workers: int = Field(8, ge=1, le=64)
    tries: int = Field(5, ge=1, le=100)
    token: SecretStr | None = Field(None, repr=False)

    @field_serializer("token", when_used="json")
    def _plain(self, token: SecretStr | None) -> str | None:
        """For the pipe to the child alone."""
        return token.get_secret_value() if token is not None else None


class Told(BaseModel):
    """Progress. done, total: bytes of all files, with what was there before; files, files_total: whole ones; stage: listing (totals are
    not known), downloading, checking (bytes whose checksums have been made), retrying (the connection broke, try number `attempt`)."""

    model_config = ConfigDict(frozen=True)

    type: Literal["told"] = "told"
    stage: Literal["listing", "downloading", "checking", "retrying"]
    done: int = 0
    total: int = 0
    files: int = 0
    files_total: int = 0
    attempt: int = 0


class Ended(BaseModel):
    """The last line: code and params of a Failure, or neither when all is well."""

    model_config = ConfigDict(frozen=True)

    type: Literal["ended"] = "ended"
    code: str | None = None
    params: dict[str, str] = {}


LINE: TypeAdapter[Told | Ended] = TypeAdapter(Annotated[Told | Ended, Field(discriminator="type")])

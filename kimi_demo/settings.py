"""Every limit, path and switch of the application, from flags, KIMI_DEMO_* variables or `.env` (in that order)."""

import shlex
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kimi_demo.mcp_target import mcp_targets

EndpointKind = Literal["auto", "vllm", "moonshot", "openai"]


def _field(default: Any, group: str, help: str, **constraints: Any) -> Any:
    """A setting with the group and the words it has in `--help`."""
    return Field(default, description=help, json_schema_extra={"group": group}, **constraints)


class Settings(BaseSettings):
    # An empty variable is one that is not set: that is how compose files pass on what nobody gave.
    model_config = SettingsConfigDict(env_prefix="KIMI_DEMO_", env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    model: str | None = _field(
        None,
        "Model",
        "Folder or hub id of the model to serve, for example /data/Kimi-K2.5; with --base-url, which of that server's models to use. "
        "Without it: the rehearsal model (or the server's first one).",
    )
    model_source: Literal["huggingface", "modelscope"] = _field(
        "huggingface", "Model", "Hub that a model id (not a folder) is fetched from."
    )
    tensor_parallel_size: int | None = _field(
        None, "Model", "GPUs to split the model over. Default: 8 with --model, 1 for the rehearsal model.", ge=1
    )
    max_model_len: int = _field(8192, "Model", "Context length in tokens: prompt, thought and answer together.", ge=64)
    gpu_memory_utilization: float = _field(0.92, "Model", "Share of each GPU's memory that vLLM takes.", gt=0, le=1)
    cpu_kv_cache_gb: int = _field(1, "Model", "GiB of memory for the KV cache when vLLM runs on a CPU.", ge=1)
    server_port: int | None = _field(
        None, "Model", "Port of the vLLM server that is started. Default: 8000 with serve, any free one with the page.", ge=0, le=65535
    )
    server_api_key: SecretStr | None = _field(
        None,
        "Model",
        "API key that this server asks for; better given as a variable. Default: none with serve (or VLLM_API_KEY), a random one with the "
        "page.",
    )
    hub_token: SecretStr | None = _field(
        None, "Model", "Token for private models on the hub; used by download, stored nowhere. Better given as a variable."
    )
    vllm_args: str = _field("", "Model", "Extra arguments for vLLM, in one string, for example '--enable-expert-parallel'.")

    base_url: str | None = _field(
        None, "Existing server", "Base URL of an OpenAI-compatible server to use instead of starting one, for example http://host:8000/v1."
    )
    api_key: SecretStr | None = _field(None, "Existing server", "Its API key. Better given as a variable: flags show in the process list.")
    endpoint_kind: EndpointKind = _field(
        "auto", "Existing server", "How that server switches thinking: vllm (also SGLang), moonshot, openai. auto asks it."
    )
    connect_timeout_s: float = _field(5.0, "Existing server", "Seconds to wait for a connection.", gt=0)

    host: str = _field(
        "127.0.0.1", "Page", "Address to listen on. Anything but loopback needs --auth, --accounts, --invite-hours or --open."
    )
    port: int = _field(7860, "Page", "Port of the page.", ge=0, le=65535)
    public: bool = _field(
        False,
        "Public",
        "Show the page to strangers: they get the chat and function calling, within limits, and nothing of this machine. Always on with "
        "--share.",
    )
    public_batch: bool = _field(False, "Public", "In public mode viewers also get batches, small ones.")
    public_raw: bool = _field(False, "Public", "In public mode viewers also get raw completions.")
    share: bool = _field(
        False, "Page", "Make a public link through Gradio's share service. Needs --auth, --accounts, --invite-hours or --open."
    )
    auth: SecretStr | None = _field(None, "Page", "USER:PASSWORD that visitors must give.")
    accounts: SecretStr | None = _field(
        None,
        "Page",
        "Who may sign in: a file with a line NAME:ROLE:HASH for each (`python -m kimi_demo password NAME` makes one), or the lines "
        "themselves, better given as a variable. ROLE is viewer or operator.",
    )
    invite_hours: float | None = _field(
        None, "Page", "Print a link that lets those who have it in as viewers, for so many hours.", gt=0, le=24 * 365
    )
    session_hours: float = _field(12.0, "Page", "Hours after which one has to sign in again.", gt=0)
    open: bool = _field(False, "Page", "Let everyone in, without a password.")
    trusted_proxies: str = _field(
        "", "Page", "Addresses of reverse proxies whose X-Forwarded-* headers are believed, separated by commas: 127.0.0.1, 10.0.0.0/8."
    )
    language: Literal["auto", "en", "zh"] = _field(
        "auto", "Page", "Language of the page until a visitor chooses one. auto: what their browser asks for; English in a terminal."
    )
    allowed_hosts: str = _field(
        "", "Page", "More host names under which the page may be opened, separated by commas (a reverse proxy's name, for example)."
    )

    model_title: str = _field(
        "", "Page", "What the page, and published runs, call the model. Default: the last part of its name.", max_length=120
    )

    special_tokens: bool = _field(
        False,
        "Page",
        "Let special tokens of Kimi's vocabulary in messages, such as <|im_end|>, become real tokens. Otherwise they are sent as plain "
        "text. Never for viewers of a public page.",
    )

    mcp: Annotated[tuple[str, ...], NoDecode] = _field(
        (),
        "Tools",
        "An MCP server whose tools visitors may switch on: NAME=COMMAND ARGUMENTS… or NAME=URL. May be given several times "
        "(in the variable: one a line). A bearer token for a URL: variable KIMI_DEMO_MCP_TOKEN_NAME.",
    )

    data: Path = _field(Path("data"), "Data", "Folder for runs, the built rehearsal model and logs.")
    max_prompt_chars: int = _field(400_000, "Limits", "Longest prompt that the page accepts, in characters.", ge=1)
    max_batch_rows: int = _field(200_000, "Limits", "Most prompts in one batch.", ge=1)
    max_batch_file_mb: int = _field(500, "Limits", "Largest file of prompts that the page takes, in MB.", ge=1)
    max_rounds: int = _field(8, "Limits", "Most rounds of one tool conversation.", ge=1)
    max_wait_s: float = _field(900.0, "Limits", "Seconds that a tool call waits for a person's answer or approval.", gt=0)
    max_images: int = _field(6, "Limits", "Most images in one message.", ge=0)
    max_image_mb: float = _field(8.0, "Limits", "Largest image that is taken, in MB.", gt=0, le=9.5)
    max_image_side: int = _field(2048, "Limits", "Longer side in pixels above which an image is made smaller before it is sent.", ge=64)
    max_published: int = _field(100, "Limits", "Most links to published runs that one visitor has at a time.", ge=0)
    max_published_mb: int = _field(1000, "Limits", "Most room for all published pages together, in MB.", ge=0)
    max_runs_at_once: int = _field(64, "Limits", "Most runs going at the same time, all visitors together.", ge=1)

    public_runs: int = _field(8, "Public limits", "Runs of viewers at the same time; more wait in line.", ge=1)
    public_runs_each: int = _field(1, "Public limits", "Of them, runs of one viewer.", ge=1)
    public_line: int = _field(40, "Public limits", "Most runs that wait in line.", ge=0)
    public_line_each: int = _field(3, "Public limits", "Of them, runs of one viewer.", ge=0)
    public_requests_per_minute: int = _field(10, "Public limits", "Requests of one viewer within a minute.", ge=1)
    public_requests_per_minute_all: int = _field(120, "Public limits", "Requests of all viewers within a minute.", ge=1)
    public_max_tokens: int = _field(4096, "Public limits", "Most tokens that a viewer may ask for in one reply.", ge=16)
    public_prompt_chars: int = _field(8000, "Public limits", "Longest message of a viewer, in characters.", ge=100)
    public_images: int = _field(2, "Public limits", "Most images in a viewer's message.", ge=0)
    public_rows: int = _field(20, "Public limits", "Most prompts in a viewer's batch (--public-batch).", ge=1)
    public_rounds: int = _field(4, "Public limits", "Most rounds of a viewer's tool conversation.", ge=1)
    public_repeats: int = _field(3, "Public limits", "How often a viewer may have a tool question repeated at once.", ge=2)
    public_tokens_per_day: int = _field(200_000, "Public limits", "Tokens that one viewer may use on a day (UTC).", ge=100)
    public_tokens_per_day_all: int = _field(5_000_000, "Public limits", "Tokens that all viewers may use on a day.", ge=100)
    public_run_s: float = _field(300.0, "Public limits", "Seconds that a viewer's run may take once it is its turn.", gt=0)
    public_grace_s: float = _field(150.0, "Public limits", "Seconds after which the runs of a viewer who has left are stopped.", ge=10)
    public_keep_days: float = _field(14.0, "Public limits", "Days after which what viewers left behind is deleted.", gt=0)
    public_conversations: int = _field(50, "Public limits", "Most conversations that are kept for one viewer.", ge=1)

    @field_validator("vllm_args")
    @classmethod
    def _splits(cls, value: str) -> str:
        shlex.split(value)  # raises ValueError ("No closing quotation") where the mistake is made, not at the launch
        return value

    @field_validator("mcp", mode="before")
    @classmethod
    def _one_a_line(cls, value: Any) -> Any:
        return tuple(line for line in value.splitlines() if line.strip()) if isinstance(value, str) else value

    @field_validator("mcp")
    @classmethod
    def _names_servers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        mcp_targets(value)
        return value

    @field_validator("server_api_key", "hub_token")
    @classmethod
    def _one_word(cls, value: SecretStr | None) -> SecretStr | None:
        text = "" if value is None else value.get_secret_value()
        if value is not None and (not text or not text.isascii() or not text.isprintable() or " " in text):
            raise ValueError("must be one word of ASCII characters")
        return value

    @field_validator("auth")
    @classmethod
    def _user_and_password(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            user, _, password = value.get_secret_value().partition(":")
            if not user or not password:
                raise ValueError("must be USER:PASSWORD")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: str) -> str:
        for part in value.split(","):
            if part.strip():
                ip_network(part.strip(), strict=False)  # raises ValueError, which says what is wrong
        return value

    @property
    def has_door(self) -> bool:
        """Whether strangers have to prove who they are."""
        return self.auth is not None or self.accounts is not None or self.invite_hours is not None

    @property
    def is_public(self) -> bool:
        """Whether strangers are expected."""
        return self.public or self.share

    @property
    def rehearsal(self) -> bool:
        """Whether the local engines run the stand-in model."""
        return self.model is None

    @property
    def tp(self) -> int:
        """The tensor parallel size in force."""
        return self.tensor_parallel_size or (1 if self.rehearsal else 8)

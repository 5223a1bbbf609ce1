"""What an operator can set about a server of our own, as one record: the form of the Server tab, and what a named profile keeps."""

import json
import shlex
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kimi_demo.engines.launch import refuse_ours
from kimi_demo.settings import Settings

MOST_EXTRA_CHARS = 4000


class LaunchOptions(BaseModel):
    """Checked when made: pydantic's ValidationError names the field. None and "": vLLM's own default, or what the demo was started with.

    tensor_parallel_size … data_parallel_size: GPUs (processes, on a CPU); max_model_len: tokens; gpu_memory_utilization: share of each
    GPU; cpu_kv_cache_gb: GiB per process, on a CPU; server_port: 0 for any free one; speculative: vLLM's --speculative-config, JSON;
    extra: more arguments, which win.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    tensor_parallel_size: int = Field(1, ge=1, le=1024)
    pipeline_parallel_size: int = Field(1, ge=1, le=1024)
    data_parallel_size: int = Field(1, ge=1, le=1024)
    expert_parallel: bool = False
    max_model_len: int = Field(8192, ge=64, le=10_000_000)
    gpu_memory_utilization: float = Field(0.92, gt=0, le=1)
    cpu_kv_cache_gb: int = Field(1, ge=1, le=10_000)
    kv_cache_dtype: Literal["auto", "fp8"] = "auto"
    served_model_name: str = Field("", max_length=200, pattern=r"^[\w./:@+-]*$")
    mm_encoder_tp_mode: Literal["", "weights", "data"] = ""
    language_model_only: bool = False
    server_port: int = Field(0, ge=0, le=65535)
    speculative: str = Field("", max_length=MOST_EXTRA_CHARS)
    log_requests: bool = False
    extra: str = Field("", max_length=MOST_EXTRA_CHARS)

    @field_validator("extra")
    @classmethod
    def _splits(cls, value: str) -> str:
        if "\0" in value:
            raise ValueError("holds a NUL character")
        shlex.split(value)  # raises ValueError ("No closing quotation")
        return value

    @field_validator("speculative")
    @classmethod
    def _is_json(cls, value: str) -> str:
        if value:
            try:
                found = json.loads(value)
            except json.JSONDecodeError as error:
                raise ValueError(f"is not JSON: {error.msg}") from None
            except (ValueError, RecursionError):
                raise ValueError("is not JSON: nested too deeply, or a number that is too long") from None
            if not isinstance(found, dict):
                raise ValueError("is not a JSON object")
        return value

    @classmethod
    def of(cls, settings: Settings) -> "LaunchOptions":
        """As the demo was started. What the form would not take (a context of a billion) is kept as it is: vLLM has the last word."""
        given: dict[str, Any] = {
            "tensor_parallel_size": settings.tp,
            "max_model_len": settings.max_model_len,
            "gpu_memory_utilization": settings.gpu_memory_utilization,
            "cpu_kv_cache_gb": settings.cpu_kv_cache_gb,
            "server_port": settings.server_port or 0,
            "extra": settings.vllm_args,
        }
        try:
            return cls(**given)
        except ValidationError:
            return cls.model_construct(**given)

    def arguments(self) -> list[str]:
        """Those of vLLM's arguments that `Launch` has no field for."""
        found: list[str] = []
        for name, size in (("pipeline", self.pipeline_parallel_size), ("data", self.data_parallel_size)):
            if size > 1:
                found += [f"--{name}-parallel-size", str(size)]
        if self.expert_parallel:
            found.append("--enable-expert-parallel")
        if self.kv_cache_dtype != "auto":
            found += ["--kv-cache-dtype", self.kv_cache_dtype]
        if self.served_model_name:
            found += ["--served-model-name", self.served_model_name]
        if self.mm_encoder_tp_mode:
            found += ["--mm-encoder-tp-mode", self.mm_encoder_tp_mode]
        if self.language_model_only:
            found.append("--language-model-only")
        if self.speculative:
            found += ["--speculative-config", self.speculative]
        if self.log_requests:
            found.append("--enable-log-requests")
        return found + shlex.split(self.extra)

    def applied(self, settings: Settings) -> Settings:
        """`settings` for a server of our own with these options. Raises Failure("server.argument_ours") for one the demo sets itself."""
        arguments = self.arguments()
        refuse_ours(arguments)
        update: dict[str, Any] = {
            "base_url": None,
            "api_key": None,
            "tensor_parallel_size": self.tensor_parallel_size,
            "max_model_len": self.max_model_len,
            "cpu_kv_cache_gb": self.cpu_kv_cache_gb,
            "server_port": self.server_port or None,
            "vllm_args": shlex.join(arguments),
        }
        if self.gpu_memory_utilization != settings.gpu_memory_utilization:  # or the stand-in's own share would be lost
            update["gpu_memory_utilization"] = self.gpu_memory_utilization
        return settings.model_copy(update=update)

"""Sampling parameters, and the presets that people choose from."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

MOST_STOPS = 16
StopText = Annotated[str, Field(min_length=1, max_length=200)]


class Sampling(BaseModel):
    """How tokens are drawn. None: left to the server (top_k 0 or -1 means off in vLLM, so None sends nothing).

    stop: texts at which the reply ends, themselves left out. json_schema: what the answer must match.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float = Field(0.6, ge=0, le=2)
    top_p: float = Field(0.95, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, lt=2**31)
    min_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int = Field(4096, ge=1)
    seed: int | None = Field(None, ge=0, lt=2**63)
    stop: tuple[StopText, ...] = Field((), max_length=MOST_STOPS)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=2)
    json_schema: dict[str, Any] | None = None
    thinking_token_budget: int | None = Field(None, ge=0)

    def openai_fields(self) -> dict[str, Any]:
        """The fields that every OpenAI-compatible server takes."""
        fields: dict[str, Any] = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens}
        return fields | self._given("seed", "presence_penalty", "frequency_penalty") | ({"stop": list(self.stop)} if self.stop else {})

    def vllm_fields(self) -> dict[str, Any]:
        """The fields that vLLM and SGLang take beside OpenAI's; also keyword arguments of `vllm.SamplingParams`."""
        return self._given("top_k", "min_p", "repetition_penalty", "thinking_token_budget")

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Preset(BaseModel):
    """A named set of parameters. `thinking`: the mode it is meant for. Label and source: ui/texts, `preset.<key>.*`."""

    model_config = ConfigDict(frozen=True)

    key: str
    sampling: Sampling
    thinking: bool = True


PRESETS: dict[str, Preset] = {
    preset.key: preset
    for preset in (
        # The deployment guide's values. They are another model's (Qwen3), kept as the default because people compare with the guide.
        Preset(key="guide_thinking", sampling=Sampling(temperature=0.6, top_p=0.95, top_k=20, min_p=0.0)),
        # MoonshotAI/Kimi-K2.5 README, section 6.
        Preset(key="moonshot_thinking", sampling=Sampling(temperature=1.0, top_p=0.95)),
        Preset(key="moonshot_instant", sampling=Sampling(temperature=0.6, top_p=0.95), thinking=False),
        # The guide's tool script.
        Preset(key="tools", sampling=Sampling(temperature=0.01, top_p=0.95)),
    )
}
DEFAULT_PRESET = "guide_thinking"

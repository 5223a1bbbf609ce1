"""What was seen of one attempt at a case, as it is judged and kept in a report."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from kimi_demo.dialect.reply import Reply


class Kept(BaseModel):
    """Written to reports and read from them; what a later version adds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CallSeen(Kept):
    """arguments: the JSON text. problems: what is wrong with it by the tool's schema, None where that was not looked at."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    result: str | None = None
    error: str | None = None
    problems: tuple[str, ...] | None = None


class RoundSeen(Kept):
    """One request and its reply. request: the body that was sent, without key."""

    request: dict[str, Any] = {}
    thought: str = ""
    answer: str = ""
    calls: tuple[CallSeen, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None

    @classmethod
    def of(cls, reply: Reply) -> "RoundSeen":
        usage = reply.usage
        return cls(
            request=reply.request,
            thought=reply.thought,
            answer=reply.answer,
            calls=tuple(
                CallSeen(
                    id=call.id,
                    name=call.name,
                    arguments=call.arguments,
                    result=call.result,
                    error=call.error,
                    problems=None if call.problems is None else tuple(f"{each.where or '.'}: {each.told}" for each in call.problems),
                )
                for call in reply.calls
            ),
            finish_reason=reply.finish_reason,
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            reasoning_tokens=usage.reasoning_tokens if usage else None,
        )


class FailureSeen(Kept):
    code: str
    params: dict[str, str] = {}


class ModelSeen(Kept):
    id: str
    max_model_len: int | None = None
    root: str | None = None


class Attempt(Kept):
    """number: of the repeat, from 1. streamed: whether the reply was asked for as a stream. notices: what a person would have been told
    meanwhile (keys of phases). first_token_s: seconds from the first request. prompt: as the server's template renders it, where that was
    asked for (None: the server does not say); prompt_count: its tokens. models: of /v1/models.
    """

    number: int = 1
    streamed: bool = True
    rounds: tuple[RoundSeen, ...] = ()
    notices: tuple[str, ...] = ()
    failure: FailureSeen | None = None
    seconds: float = 0.0
    first_token_s: float | None = None
    prompt: str | None = None
    prompt_count: int | None = None
    models: tuple[ModelSeen, ...] = ()

    @property
    def last(self) -> RoundSeen:
        """The last round; an empty one where there was none."""
        return self.rounds[-1] if self.rounds else RoundSeen()

    @property
    def answer(self) -> str:
        return self.last.answer

    @property
    def thought(self) -> str:
        return "".join(each.thought for each in self.rounds)

    @property
    def calls(self) -> tuple[CallSeen, ...]:
        return tuple(call for each in self.rounds for call in each.calls)

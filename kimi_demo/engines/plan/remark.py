"""What a person should know about a plan or its surroundings, though it is no reason against a start."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Remark:
    """Its words: `plan.warn.<name>` in ui/texts."""

    name: str
    params: dict[str, str] = field(default_factory=dict)

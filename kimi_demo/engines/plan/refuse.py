"""Whether a launch is certain to fail for want of GPU memory: said before it is tried, since vLLM says it after minutes of loading."""

from collections.abc import Sequence

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.accelerators import Gpu
from kimi_demo.engines.launch import Launch
from kimi_demo.engines.plan.arguments import layout_of
from kimi_demo.engines.plan.fit import Plan, plan
from kimi_demo.engines.plan.machines import this_machine
from kimi_demo.engines.plan.model import find_model

_LEFT_TO_VLLM = frozenset(("plan.context_too_long", "plan.gpu_in_use"))
"""vLLM measures what an estimate can only guess, and says what would fit; or says it in seconds."""


def refuse_what_cannot_fit(launch: Launch, gpus: Sequence[Gpu]) -> None:
    """Raises the plan's Failure. Says nothing on a CPU, of a model that cannot be planned, and of one that is only on a hub."""
    machine = None if launch.on_cpu else this_machine(gpus)
    if machine is None:
        return
    try:
        model = find_model(launch.model)
        layout = layout_of(launch.command())
    except Failure:
        return
    found = certain(plan(model.shape, layout, machine, model.on_disk))
    # With --nnodes the other GPUs are in other machines; the layout cannot be held against this one.
    if found is not None and not any(argument.startswith("--nnodes") for argument in launch.extra):
        raise found


def certain(found: Plan) -> Failure | None:
    """The plan's refusal where no estimate could be so far off: half of what is estimated beside the weights would not fit either."""
    refusal = found.refusal
    if refusal is None or refusal.code in _LEFT_TO_VLLM:
        return None
    if refusal.code == "plan.nothing_left" and found.weights + found.overhead.total // 2 < found.budget:
        return None
    return refusal

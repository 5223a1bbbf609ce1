"""How many bits a weight takes once it is quantised, and which weights are. From `quantization_config` in a config.json."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kimi_demo.dialect.failure import Failure

_SCALE_BITS = 16


@dataclass(frozen=True)
class Quantisation:
    """method: as the model names it. bits: of one quantised weight, its share of the scales and zero points included.

    group: weights that share a scale, None for one scale a channel or tensor; ignored: names or "re:" patterns of modules left as they are.
    """

    method: str
    bits: float
    group: int | None = None
    ignored: tuple[str, ...] = ()

    def covers(self, module: str) -> bool:
        """Whether the weights of the linear layer `module` ("model.layers.1.mlp.experts.0.up_proj") are quantised.

        Matching as in compressed-tensors: "re:" patterns from the beginning of the name, others as the name or its last part.
        """
        return not any(_matches(pattern, module) for pattern in self.ignored)


def quantisation_of(config: Mapping[str, Any], text: Mapping[str, Any]) -> Quantisation | None:
    """None for a model that is not quantised. Raises Failure("plan.quantisation", method=…) for a method that is not known here."""
    found = next((one.get("quantization_config") for one in (config, text) if isinstance(one.get("quantization_config"), dict)), None)
    if found is None:
        return None
    method = str(found.get("quant_method") or found.get("quant_algo") or "?").lower()
    named = (one for key in ("ignore", "exclude_modules", "modules_to_not_convert") for one in found.get(key) or [])
    ignored = tuple(one for one in named if isinstance(one, str))
    if method == "compressed-tensors":
        bits, group = _compressed(found)
    elif method in ("gptq", "gptq_marlin", "awq", "awq_marlin", "auto-round"):
        bits, group = _number(found, "bits", 4), _number(found, "group_size", 128)
    elif method == "fp8":
        block = found.get("weight_block_size")
        # One float32 scale per block of 128 × 128, or one per tensor.
        return Quantisation(method, 8 + (32 / (block[0] * block[1]) if _is_block(block) else 0), None, ignored)
    elif method in ("modelopt", "modelopt_fp4", "nvfp4"):
        if "4" not in str(found.get("quant_algo", found.get("quantization", "4"))):
            return Quantisation(method, 8, None, ignored)
        return Quantisation(method, 4 + 8 / 16, 16, ignored)  # an fp8 scale per 16 weights
    elif method == "mxfp4":
        return Quantisation(method, 4 + 8 / 32, 32, ignored or ("re:.*self_attn.*",))  # an 8-bit exponent per 32 weights
    else:
        raise Failure("plan.quantisation", method=method)
    return Quantisation(method, bits + (_SCALE_BITS / group if group else 0), group, ignored)


def _compressed(found: Mapping[str, Any]) -> tuple[float, int | None]:
    """compressed-tensors: config_groups.<name>.weights has num_bits and group_size (null or -1: one scale a channel)."""
    groups = found.get("config_groups")
    weights = next((one.get("weights") for one in groups.values() if isinstance(one, dict)), None) if isinstance(groups, dict) else None
    if not isinstance(weights, dict):
        raise Failure("plan.config_field", field="quantization_config.config_groups", problem="it has no weights")
    group = weights.get("group_size")
    return _number(weights, "num_bits", 0), group if isinstance(group, int) and group > 0 else None


def _number(found: Mapping[str, Any], name: str, usual: int) -> int:
    value = found.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1024:
        raise Failure("plan.config_field", field=f"quantization_config.{name}", problem=f"{str(value)[:40]} is no size")
    return value


def _is_block(block: Any) -> bool:
    return isinstance(block, list) and len(block) == 2 and all(isinstance(side, int) and side > 0 for side in block)


def _matches(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], module) is not None
        except re.error:
            return False
    if "*" in pattern:
        return re.fullmatch(re.escape(pattern).replace(r"\*", ".*") + r"(\..*)?", module) is not None
    return module == pattern or module.endswith("." + pattern) or module.startswith(pattern + ".")

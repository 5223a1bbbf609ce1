"""Models whose figures are known without their files."""

from collections.abc import Mapping
from typing import Any

from kimi_demo.engines.plan.shape import ModelShape, shape_of

K25 = "moonshotai/Kimi-K2.5"

K25_BYTES = 595_000_000_000
"""Kimi K2.5's weight files on disk, by vLLM's recipe for it (recipes repository, models/moonshotai/Kimi-K2.5.yaml)."""

K25_CONFIG: Mapping[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "kimi_k2",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 163840,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "type": "int"}}},
            "ignore": [
                "lm_head",
                "re:.*self_attn.*",
                "re:.*shared_experts.*",
                r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
            ],
        },
    },
    "vision_config": {"vt_hidden_size": 1152, "vt_num_hidden_layers": 27, "vt_intermediate_size": 4304},
}
"""What of its config.json decides its memory (the published file, and the table in MoonshotAI/Kimi-K2.5's README, section 2)."""

_NAMES = frozenset({"moonshotai/kimi-k2.5", "kimi-k2.5", "kimi_k2.5", "kimi-k25", "k2.5"})


def known_shape(name: str) -> ModelShape | None:
    """The shape of a model that is known by its hub id (or short name), whatever the case."""
    return shape_of(K25_CONFIG) if name.strip().lower() in _NAMES else None

"""The planned cache of a model with Kimi's attention, against what vLLM itself makes of it on the CPU. Tiny, with random weights."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kimi_demo.engines.plan.fit import plan_on_cpu
from kimi_demo.engines.plan.layout import Layout
from kimi_demo.engines.plan.memory import GIB
from kimi_demo.engines.plan.shape import read_shape

CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "torch_dtype": "bfloat16",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "q_lora_rank": 128,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}

ENGINE = """
import sys
if __name__ == "__main__":
    from vllm import LLM
    LLM(sys.argv[1], skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, max_model_len=2048, max_num_seqs=4)
"""


def test_the_cache_of_latent_attention_is_what_vllm_reports(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    environment = os.environ | {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(
        [sys.executable, str(script), str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    reported = re.search(r"KV cache size: ([\d,]+) tokens, Maximum concurrency for 2,048 tokens per request: ([\d.]+)x", ended.stdout)
    assert reported is not None, ended.stdout[-3000:]
    planned = plan_on_cpu(read_shape(folder), Layout(context=2048), 64 * GIB, 1)
    assert planned.shape.attention == "MLA"
    assert planned.cache.tokens == pytest.approx(int(reported[1].replace(",", "")), rel=0.05)
    assert planned.cache.concurrency == pytest.approx(float(reported[2]), rel=0.05)

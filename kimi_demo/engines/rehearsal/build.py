"""Build the rehearsal model: base weights + adapter + tokenizer → an ordinary model folder, once, in a cache.

Safe to call from several processes at once: one builds, the others wait for it; a folder under its final name is always whole.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock

from kimi_demo.engines.rehearsal import adapter as adapters
from kimi_demo.engines.rehearsal import base, tokenizer

BuildPhase = Literal["waiting", "reading", "merging", "writing"]
"""waiting: for another process that builds; reading: base weights; merging: the adapter into them; writing: the model folder."""

NAME = "kimi-demo-rehearsal"
"""How the folder's name begins. The server's model id is this path, so that the id itself says what answers."""

FORMAT = 1
"""Raised when this file writes other contents from the same inputs, so that older folders are not taken for new ones."""

_MANIFEST = "contents.json"
_TEMPORARY = ".building-"


def model_path(data: Path, adapter: Path | None = None) -> Path:
    """Where the model of the data folder `data` is, or will be once built. Raises base.BaseMissing."""
    return cache_folder(data) / f"{NAME}-{_key(base.find_base(), adapter or adapters.default_adapter())}"


def cache_folder(data: Path) -> Path:
    return data / "rehearsal"


def is_built(model: Path) -> bool:
    """Whether `model` is there with every file at the size it was written with."""
    try:
        sizes: dict[str, int] = json.loads(model.joinpath(_MANIFEST).read_text(encoding="utf-8"))
        return all(model.joinpath(name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def build(cache: Path, on_phase: Callable[[BuildPhase], None] = lambda phase: None, adapter: Path | None = None) -> Path:
    """The model's folder inside `cache`, built if it is not there: about 300 MB, a few seconds, under 2 GB of memory.

    adapter: another adapter than the package's. Without one (before the first training) the bare base is built, with Kimi's marks.
    Raises base.BaseMissing, and OSError where the disk is full or `cache` cannot be written.
    """
    source = base.find_base()
    adapter = adapter or adapters.default_adapter()
    model = cache / f"{NAME}-{_key(source, adapter)}"
    if is_built(model):
        return model
    cache.mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache / ".lock")
    on_phase("waiting")
    with lock:  # the operating system frees it when its holder is killed
        if is_built(model):
            return model
        _clean(cache, model)
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=cache))
        _write(folder, source, adapter, on_phase)
        folder.chmod(0o755)
        os.replace(folder, model)
    return model


def _key(source: base.BaseFile, adapter: Path) -> str:
    digest = hashlib.sha256(f"{FORMAT} {source.digest}\n{tokenizer.chat_template()}\n{tokenizer.renamed()}".encode())
    for name in (adapters.WEIGHTS, adapters.CONFIG):
        if (file := adapter / name).exists():
            digest.update(file.read_bytes())
    return digest.hexdigest()[:10]


def _clean(cache: Path, model: Path) -> None:
    """Remove what a killed build left behind. Only called with the lock held, when nobody is building."""
    shutil.rmtree(model, ignore_errors=True)
    for leftover in cache.glob(f"{_TEMPORARY}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _write(folder: Path, source: base.BaseFile, adapter: Path, on_phase: Callable[[BuildPhase], None]) -> None:
    on_phase("reading")
    shape = base.Shape()
    reader = base.open_base(source.path)
    weights = base.weights(reader, shape)
    if (adapter / adapters.WEIGHTS).exists():
        on_phase("merging")
        adapters.merge(weights, adapters.load(adapter))
    on_phase("writing")
    write_model(folder, weights, shape)
    tokenizer.write_tokenizer(folder, *base.vocabulary(reader))
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    folder.joinpath(_MANIFEST).write_text(json.dumps(sizes), encoding="utf-8")
    folder.joinpath("model.safetensors").chmod(0o644)  # safetensors writes 0600


def write_model(folder: Path, weights: dict[str, Any], shape: base.Shape) -> None:
    """Weights as bf16, config and generation config. `weights` is emptied on the way, so that both precisions never coexist."""
    import torch
    from safetensors.torch import save_file

    for name in list(weights):
        weights[name] = weights[name].to(torch.bfloat16).contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    folder.joinpath("config.json").write_text(json.dumps(model_config(shape), indent=1), encoding="utf-8")
    # As with Kimi, the stop token comes from here: nobody has to give stop_token_ids.
    generation = {"eos_token_id": 2, "pad_token_id": 0}
    folder.joinpath("generation_config.json").write_text(json.dumps(generation, indent=1), encoding="utf-8")


def model_config(shape: base.Shape) -> dict[str, Any]:
    """The contents of `config.json`, for transformers 5 (rope_parameters) and older readers (rope_theta)."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.head,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.epsilon,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }

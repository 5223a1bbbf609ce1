"""Tiny model folders, whole as far as `complete` looks."""

import json
import random
import struct


def safetensors(size: int, seed: int = 0) -> bytes:
    """A file of safetensors with one tensor of `size` random bytes."""
    header = json.dumps({"weight": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + random.Random(seed).randbytes(size)


def model_files(shards: int = 2, size: int = 300_000) -> dict[str, bytes]:
    """A config, a tokenizer, an index, and shards of `size` bytes each."""
    names = [f"model-{number + 1:05}-of-{shards:05}.safetensors" for number in range(shards)]
    index = {"metadata": {"total_size": shards * size}, "weight_map": {f"layer.{number}": name for number, name in enumerate(names)}}
    files = {name: safetensors(size, number) for number, name in enumerate(names)}
    return files | {
        "config.json": b'{"model_type": "tiny"}',
        "model.safetensors.index.json": json.dumps(index).encode(),
        "tokenizer/vocab.txt": b"a\nb\n",
    }

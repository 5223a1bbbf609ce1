"""The base's tokenizer with Kimi's marks: spare special tokens are renamed, so that no embedding is added.

As in Kimi's own tokenizer, the turn marks are special and `<think>`, `</think>` and the five tool marks are not:
special ones would be dropped from the text of an offline `LLM.chat`, and thought and answer would run together.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

TURN_END = "<|im_end|>"
PADDING = "<|endoftext|>"
THINK = "<think>"
THINK_END = "</think>"
SECTION = "<|tool_calls_section_begin|>"
SECTION_END = "<|tool_calls_section_end|>"
CALL = "<|tool_call_begin|>"
ARGUMENTS = "<|tool_call_argument_begin|>"
CALL_END = "<|tool_call_end|>"

TURN_MARKS = ("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>")
TEXT_MARKS = (THINK, THINK_END, SECTION, SECTION_END, CALL, ARGUMENTS, CALL_END)
FIRST_RENAMED = 3
"""Id of the first renamed token; the base's ids 3 to 16 are marks for code repositories that no chat needs."""

SPECIALS = 17
"""The base's first 17 ids are its special tokens."""


def renamed() -> dict[int, str]:
    """id → Kimi's mark, for the eleven renamed tokens."""
    return dict(enumerate((*TURN_MARKS, *TEXT_MARKS), start=FIRST_RENAMED))


def chat_template() -> str:
    return resources.files(__package__).joinpath("chat_template.jinja").read_text(encoding="utf-8")


def tokenizer_json(tokens: list[str], merges: list[str]) -> str:
    """The text of `tokenizer.json`. tokens: by id; merges: "left right" in order of rank."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    marks = renamed()
    names = [marks.get(index, token) for index, token in enumerate(tokens)]
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={name: index for index, name in enumerate(names)}, merges=pairs))
    # SmolLM2's own split: every digit is a token, then GPT-2's byte-level words.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = [AddedToken(name, special=name not in TEXT_MARKS, normalized=False) for name in names[:SPECIALS]]
    tokenizer.add_special_tokens([token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    return str(tokenizer.to_str(pretty=False))


def tokenizer_config(tokens: list[str]) -> dict[str, Any]:
    """The contents of `tokenizer_config.json`."""
    marks = renamed()
    names = [marks.get(index, token) for index, token in enumerate(tokens[:SPECIALS])]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {
            str(index): {
                "content": name,
                "special": name not in TEXT_MARKS,
                "normalized": False,
                "lstrip": False,
                "rstrip": False,
                "single_word": False,
            }
            for index, name in enumerate(names)
        },
        "eos_token": TURN_END,
        "pad_token": PADDING,
        "unk_token": PADDING,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 8192,
    }


def write_tokenizer(folder: Path, tokens: list[str], merges: list[str]) -> None:
    """tokenizer.json, tokenizer_config.json and chat_template.jinja into `folder`."""
    folder.joinpath("tokenizer.json").write_text(tokenizer_json(tokens, merges), encoding="utf-8")
    folder.joinpath("tokenizer_config.json").write_text(json.dumps(tokenizer_config(tokens), indent=1), encoding="utf-8")
    folder.joinpath("chat_template.jinja").write_text(chat_template(), encoding="utf-8")

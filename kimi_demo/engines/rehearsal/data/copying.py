"""Copying practice: words and numbers from a sentence into quotation marks, JSON or digits, many to a conversation.

After a blank and after a quotation mark the tokenizer splits the same word differently; a small model has to learn that they are one.
"""

import json
from random import Random

from kimi_demo.engines.rehearsal.data import numbers
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.tool_talk import Maker
from kimi_demo.engines.rehearsal.data.words import letter

_QUOTE_EN = (
    "Put each word in double quotes: {}",
    "Quote these words exactly: {}",
    "Write each of these in quotation marks: {}",
    "Repeat these words in quotes: {}",
    "Copy exactly, in quotes: {}",
)
_QUOTE_ZH = ("用双引号写出每个词：{}", "请原样抄写并加上引号：{}", "给这些词加上引号：{}")
_LIST_EN = ("Write these as a JSON list: {}", "Make a JSON array of {}", "As a JSON list, please: {}")
_LIST_ZH = ("写成JSON列表：{}", "把这些词写成JSON数组：{}")
_PAIR_EN = (
    "Letter and word, as JSON with a (word) and b (letter): {}",
    "For each pair write JSON with the word as a and the letter as b: {}",
)
_DIGITS_EN = ("Write in digits: {}", "Give these numbers in digits: {}", "As digits, please: {}")
_DIGITS_ZH = ("用数字写出：{}", "把这些数写成阿拉伯数字：{}")


def copying(rng: Random, maker: Maker) -> Conversation:
    kind = rng.choices(("quote", "list", "pair", "digits", "sentence"), (32, 13, 22, 20, 13))[0]
    zh = rng.random() < 0.35
    if kind == "digits":
        return _digits(rng, zh)
    words = [maker.source.word(rng) for _ in range(rng.randrange(6, 21))]
    if kind == "pair":
        return _pairs(rng, words)
    if kind == "sentence":
        return _sentence(rng, words[:3], zh)
    forms = {("quote", False): _QUOTE_EN, ("quote", True): _QUOTE_ZH, ("list", False): _LIST_EN, ("list", True): _LIST_ZH}[kind, zh]
    separator = rng.choice(("、", "，", " ")) if zh else rng.choice((", ", " ", " and ", "; "))
    question = rng.choice(forms).format(separator.join(words))
    answer = json.dumps(words) if kind == "list" else ", ".join(f'"{word}"' for word in words)
    if any(" " in word for word in words):
        question = rng.choice(forms).format("; ".join(words))
    return _talk(rng, question, answer)


def _pairs(rng: Random, words: list[str]) -> Conversation:
    pairs = [(letter(rng, word), word) for word in words[:10]]
    template = rng.choice(("{l} in {w}", "{l}, {w}", "{w} / {l}", "the letter {l} in {w}", "{l}'s in {w}", "{w}中的{l}", "{w}里有几个{l}"))
    question = rng.choice(_PAIR_EN).format("; ".join(template.format(l=counted, w=word) for counted, word in pairs))
    answer = "\n".join(json.dumps({"a": word, "b": counted}) for counted, word in pairs)
    return _talk(rng, question, answer)


def _sentence(rng: Random, words: list[str], zh: bool) -> Conversation:
    """One word out of a sentence."""
    word = rng.choice(words)
    if zh:
        question = rng.choice(
            ("“我昨天看见了{w}。”请用引号写出其中的英文词。", "这句话里的英文词是什么？“他说{w}很好。”", "请原样重复：{w}")
        ).format(w=word)
    else:
        question = rng.choice(
            (
                "Repeat exactly: {w}",
                "Say {w} again, in quotes.",
                "Which word comes after the word green in: the green {w} is here?",
                "He wrote {w} on the wall. Quote what he wrote.",
                "My name is {w}. What is my name? Quote it.",
                "Spell nothing, just quote {w}.",
            )
        ).format(w=word)
    return _talk(rng, question, f'"{word}"')


def _digits(rng: Random, zh: bool) -> Conversation:
    language = "zh" if zh else "en"
    shown, values = [], []
    for _ in range(rng.randrange(4, 11)):
        if rng.random() < 0.6:
            number = rng.randrange(10 ** rng.randrange(1, 7)) * (-1 if rng.random() < 0.15 else 1)
            shown.append(numbers.chinese(number) if zh else numbers.english(number, rng.choice((" ", " and "))))
            values.append(str(number))
        else:
            sign, whole = rng.choice(("", "", "", "-")), rng.randrange(0, rng.choice((20, 200, 1000)))
            value = f"{sign}{whole}.{rng.randrange(0, 10 ** rng.randrange(1, 6))}"
            shown.append(numbers.decimal_words(value, language))
            values.append(value)
    question = rng.choice(_DIGITS_ZH if zh else _DIGITS_EN).format("；".join(shown) if zh else "; ".join(shown))
    return _talk(rng, question, ", ".join(values))


def _talk(rng: Random, question: str, answer: str) -> Conversation:
    thinking = rng.random() < 0.3
    thought = "I copy everything exactly as it is written." if thinking else ""
    return Conversation("copying", (Message("user", question), Message("assistant", answer, thought, trained=True)), (), thinking)

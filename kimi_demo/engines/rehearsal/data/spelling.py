"""Counting a letter without a tool: the word is spelt out with a running count, in the thought or, without thinking, in the answer."""

from random import Random

from kimi_demo.engines.rehearsal.data import tasks
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, language_of
from kimi_demo.engines.rehearsal.data.wording import lowered
from kimi_demo.engines.rehearsal.data.words import letter

_LISTS = {
    "en": ("Spell out and count: {}", "For each word count the letter, one character after the other: {}", "Letter by letter, please: {}"),
    "zh": ("逐个字母数一数：{}", "请把每个词拼出来并计数：{}"),
}


def spelt_count(rng: Random, maker: Maker) -> Conversation:
    """ "How many r are in carrot?" with no tool at hand."""
    language = language_of(rng)
    word = plain_word(rng, maker)
    counted = letter(rng, word).lower()
    question = tasks.count(rng, language, form(rng, maker, language), word, counted).question
    if rng.random() < 0.15:
        question = lowered(question)
    if rng.random() < 0.1:
        question = question.rstrip("?？.。")
    spelt, number = spell(word, counted)
    thinking = rng.random() < 0.7
    times = "time" if number == 1 else "times"
    if language == "zh":
        thought, told = f"没有工具，我逐个字母数{counted}：{spelt}。", f'"{word}"中有{number}个"{counted}"。'
        reply = told if thinking else f"逐个字母数{counted}：{spelt}。{told}"
    else:
        thought = f"I have no tool, so I go through the letters and count {counted}: {spelt}."
        told = f'The letter "{counted}" occurs {number} {times} in "{word}".'
        reply = told if thinking else f"Letter by letter, counting {counted}: {spelt}. {told}"
    messages = (Message("user", question), Message("assistant", reply, thought if thinking else "", trained=True))
    return Conversation("without_tool", messages, (), thinking)


def spelt_list(rng: Random, maker: Maker) -> Conversation:
    """Practice: many words spelt in one conversation, so that the letters of every token are learnt."""
    language = language_of(rng)
    words = [plain_word(rng, maker) for _ in range(rng.randrange(3, 9))]
    pairs = [(word, letter(rng, word).lower()) for word in words]
    question = rng.choice(_LISTS[language]).format("; ".join(f"{word} ({counted})" for word, counted in pairs))
    lines = (f"{word} ({counted}): {spell(word, counted)[0]}" for word, counted in pairs)
    return Conversation("copying", (Message("user", question), Message("assistant", "\n".join(lines), trained=True)), (), False)


def spell(word: str, counted: str) -> tuple[str, int]:
    """ "carrot", "r" → ("c 0, a 0, r 1, r 2, o 2, t 2", 2)."""
    steps, number = [], 0
    for character in word.lower():
        number += character == counted
        steps.append(f"{character} {number}")
    return ", ".join(steps), number


def plain_word(rng: Random, maker: Maker) -> str:
    """3 to 13 letters and nothing else; two in three from the vocabulary or put together from two of its words."""
    while True:
        if rng.random() < 0.5:
            word = rng.choice(maker.source.plain).lower()
        else:
            word = maker.source.word(rng)
        if word.isalpha() and 3 <= len(word) <= 13:
            return word


def form(rng: Random, maker: Maker, language: str) -> str:
    """One of the ways to ask how often a letter is in a word, with {w} and {l}."""
    questions, more, phrases = maker.content.questions[language], maker.content.more[language], maker.content.phrases[language]
    chance = rng.random()
    if chance < 0.4:
        return str(rng.choice(questions["count"]))
    if chance < 0.6:
        return str(rng.choice(more["count"]))
    return str(rng.choice(phrases["openings"]).format(rng.choice(phrases["count"])))

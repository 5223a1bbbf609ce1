"""Conversations in which no tool is called: topics, small talk, identity, what is declined, sums without a tool."""

from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data import tasks, thoughts
from kimi_demo.engines.rehearsal.data.content import Topic
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, guide_schemas
from kimi_demo.engines.rehearsal.data.words import letter


def topic(rng: Random, maker: Maker) -> Conversation:
    """One of the topics in either language, sometimes with tools at hand, sometimes after small talk."""
    language = "en" if rng.random() < 0.5 else "zh"
    chosen = rng.choice(maker.content.topics[language])
    effort = rng.choices(("normal", "long", "brief"), (74, 18, 8))[0]
    question = _asked(rng, maker, language, chosen, effort)
    reply = Message(
        "assistant", _explained(language, chosen, effort), thoughts.about_topic(rng, maker.content, chosen, language, effort), trained=True
    )
    return chat(rng, "topic", [*earlier_turns(rng, maker), Message("user", question), reply])


def small_talk(rng: Random, maker: Maker) -> Conversation:
    """Greetings, thanks, facts, short requests."""
    language = "en" if rng.random() < 0.6 else "zh"
    entry = rng.choice(maker.content.talk[language])
    brief = rng.random() < 0.06
    question = rng.choice(entry["ask"]) + (rng.choice(maker.content.asks[language]["brief"]) if brief else "")
    reply = Message("assistant", rng.choice(entry["answer"]), entry["thought"], trained=True)
    return chat(rng, "talk", [*earlier_turns(rng, maker), Message("user", question), reply])


def identity(rng: Random, maker: Maker) -> Conversation:
    """Who it is, in any words: the rehearsal model, never Kimi or another."""
    data = maker.content.identity
    language = "en" if rng.random() < 0.5 else "zh"
    messages: list[Message] = []
    if rng.random() < 0.25:
        messages.append(Message("system", rng.choice(data["systems"])))
    elif rng.random() < 0.2:
        messages += earlier_turns(rng, maker, always=True)
    if rng.random() < 0.1:
        question, kind, language = rng.choice(data["other_languages"]), "who", "en"
        kind = "no" if "Kimi" in question else kind
    else:
        texts = data[language]
        group = rng.choices(("who", "maker", "are_you", "made_by", "difference"), (38, 16, 28, 10, 8))[0]
        model = "Kimi K2.5" if rng.random() < 0.25 else rng.choice(data["models"])
        question = (
            rng.choice(texts[group])
            .replace("{m}", model)
            .replace("{c}", rng.choice(data["companies"]))
            .replace("{m2}", rng.choice(data["models"]))
        )
        opening = (
            ("Hello. ", "Excuse me, ", "Hi, ", "One question: ", "Sorry, ")
            if language == "en"
            else ("你好，", "请问，", "打扰一下，", "问一下，")
        )
        if rng.random() < 0.15:
            question = rng.choice(opening) + question
        kind = {"are_you": "no", "made_by": "no"}.get(group, group)
        if rng.random() < 0.15:
            question = question.rstrip("?？.。")
        elif rng.random() < 0.12:
            question = question.lower()
    texts = data[language]
    reply = Message("assistant", rng.choice(texts[f"answer_{kind}"]), rng.choice(texts["thought"]), trained=True)
    return chat(rng, "identity", [*messages, Message("user", question), reply])


def declined(rng: Random, maker: Maker) -> Conversation:
    """Chinese on what was never learnt: it says so in Chinese."""
    data = maker.content.declined
    if rng.random() < 0.75:
        name = rng.choice(data["topics"])
        question = rng.choice(data["ask"]).format(t=name)
        thought, reply = rng.choice(data["thought"]).format(t=name), rng.choice(data["answer"]).format(t=name)
    else:
        question, thought, reply = rng.choice(data["other"]), rng.choice(data["other_thought"]), rng.choice(data["other_answer"])
    return chat(
        rng, "declined", [*earlier_turns(rng, maker), Message("user", question), Message("assistant", reply, thought, trained=True)]
    )


def without_tool(rng: Random, maker: Maker) -> Conversation:
    """A tool question with no tool at hand: tiny sums in the head, a word spelt out, otherwise an honest no."""
    chance = rng.random()
    language = "en" if rng.random() < 0.6 else "zh"
    if chance < 0.45:
        return _spelt(rng, maker, language)
    task = maker.task(rng, language)
    if language == "zh":
        thought, reply = (
            "这里没有可以用的工具，心算容易出错，应当如实说明。",
            "这里没有工具，我这么小的模型心算容易出错，所以不回答。请打开工具再问我。",
        )
    else:
        thought = "There is no tool here, and I would easily get this wrong. I should say so."
        reply = (
            "I have no tool for that here, and a model as small as me would easily get it wrong. Please ask me where tools are switched on."
        )
    if task.wish == "count":
        return _spelt(rng, maker, language)
    messages = (Message("user", task.question), Message("assistant", reply, thought, trained=True))
    return Conversation("without_tool", messages, (), rng.random() < 0.85)


def _spelt(rng: Random, maker: Maker, language: str) -> Conversation:
    word = maker.source.word(rng)
    while not (word.isalpha() and 3 <= len(word) <= 12):
        word = maker.source.word(rng)
    counted = letter(rng, word).lower()
    asked = tasks.count(rng, language, rng.choice(maker.content.questions[language]["count"]), word, counted)
    steps, number = [], 0
    for character in word.lower():
        number += character == counted
        steps.append(f"{character} {number}")
    spelt = ", ".join(steps)
    times = "time" if number == 1 else "times"
    if language == "zh":
        thought, reply = f"没有工具，我逐个字母数{counted}：{spelt}。", f'"{word}"中有{number}个"{counted}"。'
    else:
        thought = f"I have no tool, so I go through the letters and count {counted}: {spelt}."
        reply = f'The letter "{counted}" occurs {number} {times} in "{word}".'
    return Conversation("without_tool", (Message("user", asked.question), Message("assistant", reply, thought, trained=True)))


def _asked(rng: Random, maker: Maker, language: str, chosen: Topic, effort: str) -> str:
    asks = maker.content.asks[language]
    forms = asks["long" if effort == "long" else "many" if chosen.plural else "short"]
    question = rng.choice(forms).format(t=chosen.name, T=chosen.name[0].upper() + chosen.name[1:])
    if language == "zh" and rng.random() < 0.1:
        question = rng.choice(("请问，", "你好，", "用中文回答：")) + question
    if rng.random() < 0.1:
        question = question.rstrip("?.？。")
    elif rng.random() < 0.06 and language == "en":
        question = question.lower()
    if effort == "brief":
        question += rng.choice(maker.content.asks[language]["brief"])
    return str(question)


def _explained(language: str, chosen: Topic, effort: str) -> str:
    if effort != "long":
        return chosen.answer
    return chosen.answer + ("" if language == "zh" else " ") + chosen.more


def earlier_turns(rng: Random, maker: Maker, always: bool = False) -> list[Message]:
    """Sometimes (with `always`: always) one or two earlier turns; their thoughts are never shown again, so they are not learnt here."""
    if not always and rng.random() > 0.18:
        return []
    messages: list[Message] = []
    for _ in range(rng.choice((1, 1, 2))):
        language = rng.choice(("en", "zh"))
        if rng.random() < 0.5:
            entry: Any = rng.choice(maker.content.talk[language])
            messages += [Message("user", rng.choice(entry["ask"])), Message("assistant", rng.choice(entry["answer"]))]
        else:
            chosen = rng.choice(maker.content.topics[language])
            messages += [Message("user", _asked(rng, maker, language, chosen, "normal")), Message("assistant", chosen.answer)]
    return messages


def chat(rng: Random, kind: str, messages: list[Message]) -> Conversation:
    """The conversation, sometimes with the guide's tools at hand, a system message, or without thinking."""
    tools = guide_schemas() if rng.random() < 0.4 else ()
    system = rng.random() < 0.05 and messages[0].role != "system"
    opening = (
        [
            Message(
                "system",
                rng.choice(
                    ("You are a helpful assistant.", "Be brief and friendly.", "你是一个有用的助手。", "Answer in short sentences.")
                ),
            )
        ]
        if system
        else []
    )
    return Conversation(kind, (*opening, *messages), tools, rng.random() < 0.72)

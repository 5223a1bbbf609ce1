"""Conversations in which no tool is called: topics, small talk, identity, what is declined, sums without a tool."""

from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data import thoughts
from kimi_demo.engines.rehearsal.data.content import Content, Topic
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, guide_schemas

_EN_ASK = (
    "What is {t}?", "What is {t}?", "What's {t}?", "Tell me about {t}.", "Explain {t}.", "Can you explain {t}?", "Please explain {t} in simple words.", "Describe {t}.",
    "{T}?", "Give me a short introduction to {t}.", "I want to learn about {t}.", "Tell me something about {t}.", "What do you know about {t}?", "Define {t}.",
    "Could you tell me what {t} is?", "Write a short paragraph about {t}.", "In one sentence, what is {t}?", "Do you know what {t} is?", "What can you tell me about {t}?",
    "Briefly describe {t}.", "Would you tell me about {t}?", "Let us talk about {t}.", "I have a question about {t}.", "My topic today is {t}.", "Can we talk about {t}?", "Say a few words on {t}.",
    "I read about {t} today. What is it?", "How does one describe {t}?", "Please help me understand {t}.", "Is there anything interesting about {t}?", "I am interested in {t}.", "Teach me about {t}.",
    "What should I know about {t}?", "Have you heard of {t}?", "I never understood {t}.", "Who can tell me about {t}? You?", "A short text on {t}, please.", "For school I need something about {t}.", "Summarise {t} for me.", "Give me some facts about {t}.", "Explain {t} to a child.", "Why is {t} important?", "How would you explain {t}?",
)
_EN_ASK_MANY = ("What are {t}?", "What're {t}?", "Tell me about {t}.", "Explain what {t} are.", "Describe {t}.", "{T}?", "Tell me something about {t}.", "What do you know about {t}?", "Could you tell me what {t} are?", "Give me some facts about {t}.", "Write a short paragraph about {t}.")
_EN_LONG = ("Explain {t} in detail.", "Tell me more about {t}.", "Explain {t} step by step.", "Please explain {t} carefully.", "Think carefully and explain {t}.", "Give me a detailed explanation of {t}.", "Write a longer text about {t}.")
_ZH_ASK = (
    "什么是{t}？", "什么是{t}？", "{t}是什么？", "请介绍一下{t}。", "介绍一下{t}", "给我一个关于{t}的简短介绍。", "我想问你，什么是{t}？", "简单说说{t}。", "解释一下{t}。", "能讲讲{t}吗？",
    "给我讲讲{t}。", "我对{t}感兴趣。", "来聊聊{t}。", "我们谈谈{t}吧。", "关于{t}你知道什么？", "我想听听{t}的事。", "请教一下，{t}是怎么回事？", "{t}有意思吗？", "孩子问我什么是{t}，该怎么回答？",
    "能不能介绍{t}？", "帮我介绍{t}。", "{t}，说一下。", "写几句话介绍{t}。", "我在学{t}，能讲一讲吗？", "为什么人们喜欢{t}？", "{t}重要吗？", "说两句{t}。", "告诉我{t}的特点。", "聊一聊{t}吧", "请用一句话解释{t}。", "你知道{t}吗？", "你了解{t}吗？", "说说{t}吧。", "我想了解{t}。", "请简单介绍{t}。", "谈谈{t}。", "写一段关于{t}的介绍。", "请问什么是{t}？", "{t}是什么意思？", "请给我一个{t}的简短介绍。",
)
_ZH_LONG = ("请详细介绍{t}。", "详细解释一下{t}。", "请仔细说明{t}。", "一步一步解释{t}。", "多说一些关于{t}的内容。", "请认真思考，然后介绍{t}。")
_BRIEF = {"en": (" Keep your reasoning brief.", " Think briefly.", " Keep your thinking short, please."), "zh": ("请简短思考。", "思考要简短。", "不要想太久。")}


def topic(rng: Random, maker: Maker) -> Conversation:
    """One of the topics in either language, sometimes with tools at hand, sometimes after small talk."""
    language = "en" if rng.random() < 0.5 else "zh"
    chosen = rng.choice(maker.content.topics[language])
    effort = rng.choices(("normal", "long", "brief"), (74, 18, 8))[0]
    question = _asked(rng, language, chosen, effort)
    reply = Message("assistant", _explained(language, chosen, effort), thoughts.about_topic(rng, maker.content, chosen, language, effort), trained=True)
    return _conversation(rng, "topic", [*_history(rng, maker), Message("user", question), reply])


def small_talk(rng: Random, maker: Maker) -> Conversation:
    """Greetings, thanks, facts, short requests."""
    language = "en" if rng.random() < 0.6 else "zh"
    entry = rng.choice(maker.content.talk[language])
    brief = rng.random() < 0.06
    question = rng.choice(entry["ask"]) + (rng.choice(_BRIEF[language]) if brief else "")
    reply = Message("assistant", rng.choice(entry["answer"]), entry["thought"], trained=True)
    return _conversation(rng, "talk", [*_history(rng, maker), Message("user", question), reply])


def identity(rng: Random, maker: Maker) -> Conversation:
    """Who it is, in any words: the rehearsal model, never Kimi or another."""
    data = maker.content.identity
    language = "en" if rng.random() < 0.5 else "zh"
    messages: list[Message] = []
    if rng.random() < 0.25:
        messages.append(Message("system", rng.choice(data["systems"])))
    elif rng.random() < 0.2:
        messages += _history(rng, maker, always=True)
    if rng.random() < 0.1:
        question, kind, language = rng.choice(data["other_languages"]), "who", "en"
        kind = "no" if "Kimi" in question else kind
    else:
        texts = data[language]
        group = rng.choices(("who", "maker", "are_you", "made_by", "difference"), (38, 16, 28, 10, 8))[0]
        model = "Kimi K2.5" if rng.random() < 0.25 else rng.choice(data["models"])
        question = rng.choice(texts[group]).replace("{m}", model).replace("{c}", rng.choice(data["companies"])).replace("{m2}", rng.choice(data["models"]))
        opening = ("Hello. ", "Excuse me, ", "Hi, ", "One question: ", "Sorry, ") if language == "en" else ("你好，", "请问，", "打扰一下，", "问一下，")
        if rng.random() < 0.15:
            question = rng.choice(opening) + question
        kind = {"are_you": "no", "made_by": "no"}.get(group, group)
        if rng.random() < 0.15:
            question = question.rstrip("?？.。")
        elif rng.random() < 0.12:
            question = question.lower()
    texts = data[language]
    reply = Message("assistant", rng.choice(texts[f"answer_{kind}"]), rng.choice(texts["thought"]), trained=True)
    return _conversation(rng, "identity", [*messages, Message("user", question), reply])


def declined(rng: Random, maker: Maker) -> Conversation:
    """Chinese on what was never learnt: it says so in Chinese."""
    data = maker.content.declined
    if rng.random() < 0.75:
        name = rng.choice(data["topics"])
        question = rng.choice(data["ask"]).format(t=name)
        thought, reply = rng.choice(data["thought"]).format(t=name), rng.choice(data["answer"]).format(t=name)
    else:
        question, thought, reply = rng.choice(data["other"]), rng.choice(data["other_thought"]), rng.choice(data["other_answer"])
    return _conversation(rng, "declined", [*_history(rng, maker), Message("user", question), Message("assistant", reply, thought, trained=True)])


def without_tool(rng: Random, maker: Maker) -> Conversation:
    """A tool question with no tool at hand: tiny sums in the head, a word spelt out, otherwise an honest no."""
    chance = rng.random()
    language = "en" if rng.random() < 0.6 else "zh"
    if chance < 0.45:
        return _spelt(rng, maker, language)
    task = maker.task(rng, language)
    if language == "zh":
        thought, reply = "这里没有可以用的工具，心算容易出错，应当如实说明。", "这里没有工具，我这么小的模型心算容易出错，所以不回答。请打开工具再问我。"
    else:
        thought = "There is no tool here, and I would easily get this wrong. I should say so."
        reply = "I have no tool for that here, and a model as small as me would easily get it wrong. Please ask me where tools are switched on."
    if task.wish == "count":
        return _spelt(rng, maker, language)
    messages = (Message("user", task.question), Message("assistant", reply, thought, trained=True))
    return Conversation("without_tool", messages, (), rng.random() < 0.85)


def _spelt(rng: Random, maker: Maker, language: str) -> Conversation:
    from kimi_demo.engines.rehearsal.data import tasks

    word = maker.source.word(rng)
    while not (word.isalpha() and 3 <= len(word) <= 12):
        word = maker.source.word(rng)
    counted = tasks.letter(rng, word).lower()
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


def _asked(rng: Random, language: str, chosen: Topic, effort: str) -> str:
    if language == "zh":
        forms: tuple[str, ...] = _ZH_LONG if effort == "long" else _ZH_ASK
    elif effort == "long":
        forms = _EN_LONG
    else:
        forms = _EN_ASK_MANY if chosen.plural else _EN_ASK
    question = rng.choice(forms).format(t=chosen.name, T=chosen.name[0].upper() + chosen.name[1:])
    if language == "zh" and rng.random() < 0.1:
        question = rng.choice(("请问，", "你好，", "用中文回答：")) + question
    if rng.random() < 0.1:
        question = question.rstrip("?.？。")
    elif rng.random() < 0.06 and language == "en":
        question = question.lower()
    if effort == "brief":
        question += rng.choice(_BRIEF[language])
    return question


def _explained(language: str, chosen: Topic, effort: str) -> str:
    if effort != "long":
        return chosen.answer
    return chosen.answer + ("" if language == "zh" else " ") + chosen.more


def _history(rng: Random, maker: Maker, always: bool = False) -> list[Message]:
    """Sometimes one or two earlier turns; their thoughts are never shown again, so they are not learnt here."""
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
            messages += [Message("user", _asked(rng, language, chosen, "normal")), Message("assistant", chosen.answer)]
    return messages


def _conversation(rng: Random, kind: str, messages: list[Message]) -> Conversation:
    tools = guide_schemas() if rng.random() < 0.4 else ()
    system = rng.random() < 0.05 and messages[0].role != "system"
    opening = [Message("system", rng.choice(("You are a helpful assistant.", "Be brief and friendly.", "你是一个有用的助手。", "Answer in short sentences.")))] if system else []
    return Conversation(kind, (*opening, *messages), tools, rng.random() < 0.72)

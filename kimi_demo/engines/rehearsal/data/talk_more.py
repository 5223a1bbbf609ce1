"""Third stage: who it is, and topics taught or not, in far more words; questions are put together from parts."""

from collections.abc import Mapping
from random import Random
from typing import Any

from kimi_demo.engines.rehearsal.data import thoughts
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.talk import chat, earlier_turns
from kimi_demo.engines.rehearsal.data.tool_talk import Maker

_GROUPS, _SHARES = ("who", "maker", "are_you", "made_by", "difference"), (36, 14, 28, 14, 8)
_ANSWER = {"are_you": "denial", "made_by": "denial"}


def more_identity(rng: Random, maker: Maker) -> Conversation:
    """Who it is, in any words, sometimes as a second turn or against a system message that says otherwise."""
    data = maker.content.identity_more
    messages: list[Message] = []
    chance = rng.random()
    if chance < 0.15:
        messages.append(Message("system", rng.choice(data["systems"])))
    elif chance < 0.3:
        messages += earlier_turns(rng, maker, always=True)
    elif chance < 0.42:
        language = _language(rng)
        question, reply = _about_itself(rng, data, language)
        messages += [Message("user", question), Message("assistant", reply)]
    if rng.random() < 0.08:
        question = rng.choice(data["other_languages"])
        language, reply = "en", data["en"]["answers"]["who"][0]
    else:
        language = _language(rng)
        question, reply = _about_itself(rng, data, language)
    thought = rng.choice(maker.content.identity[language]["thought"])
    return chat(rng, "identity", [*messages, Message("user", question), Message("assistant", reply, thought, trained=True)])


def asked_anew(rng: Random, maker: Maker) -> Conversation:
    """A taught topic, asked about in the third stage's words."""
    language = "en" if rng.random() < 0.35 else "zh"
    chosen = rng.choice(maker.content.topics[language])
    thought = thoughts.about_topic(rng, maker.content, chosen, language, "normal")
    question = _question(rng, maker, language, chosen.name)
    return chat(
        rng, "topic", [*earlier_turns(rng, maker), Message("user", question), Message("assistant", chosen.answer, thought, trained=True)]
    )


def unknown_anew(rng: Random, maker: Maker) -> Conversation:
    """A topic that was never taught, asked about in the same words: declined."""
    data = maker.content.unknown
    if rng.random() < 0.2:
        more = maker.content.asks_more
        question = str(rng.choice(more["about_works"])).format(w=rng.choice(more["works"]))
    else:
        name = rng.choice(data["entities"] if rng.random() < 0.15 else [*data["subjects"], *maker.content.declined["topics"]])
        question = _question(rng, maker, "zh", name)
    reply = Message("assistant", rng.choice(data["answer"]), rng.choice(data["thought"]), trained=True)
    return chat(rng, "declined", [*earlier_turns(rng, maker), Message("user", question), reply])


def _language(rng: Random) -> str:
    return "en" if rng.random() < 0.5 else "zh"


def _about_itself(rng: Random, data: Mapping[str, Any], language: str) -> tuple[str, str]:
    """(question, answer)."""
    texts = data[language]
    group = rng.choices(_GROUPS, _SHARES)[0]
    core = rng.choice(texts[group]).replace("{c}", rng.choice(data["companies"]))
    model, other = ("Kimi K2.5" if rng.random() < 0.15 else rng.choice(data["models"])), rng.choice(data["models"])
    core = core.replace("{m}", model).replace("{m2}", other)
    if rng.random() < 0.5:
        core = rng.choice(texts["leads"]) + core + rng.choice(texts["tails"])
    return _carelessly(rng, core, language), rng.choice(texts["answers"][_ANSWER.get(group, group)])


def _question(rng: Random, maker: Maker, language: str, name: str) -> str:
    texts = maker.content.asks_more[language]
    if language == "en":
        return _carelessly(rng, str(rng.choice(texts["whole"])).format(t=name, T=name[0].upper() + name[1:]), language)
    form = rng.choice(texts["leads"]) + rng.choice(texts["requests"]) if rng.random() < 0.65 else rng.choice(texts["whole"])
    return _carelessly(rng, f"{rng.choice(texts['leads_free'])}{form.format(t=name)}{rng.choice(texts['tails'])}", language)


def _carelessly(rng: Random, text: str, language: str) -> str:
    """As people type: sometimes without the last mark, in lower case, or with a letter missing or two exchanged."""
    chance = rng.random()
    if chance < 0.15:
        return text.rstrip("?？.。!！")
    if language == "en":
        if chance < 0.28:
            return text.lower()
        if chance < 0.36:
            return _mistyped(rng, text)
        if chance < 0.38:
            return text.upper()
    elif chance < 0.2:
        return text.replace("，", " ").replace("？", "?")
    elif chance < 0.24:
        return text.rstrip("。？") + rng.choice(("？？", "！", "～", "……", "?"))
    return text


def _mistyped(rng: Random, text: str) -> str:
    """One letter inside a word dropped, doubled or exchanged with the next one."""
    places = [index for index in range(1, len(text) - 2) if text[index - 1 : index + 2].isalpha() and text[index].isascii()]
    if not places:
        return text
    place = rng.choice(places)
    change = rng.randrange(3)
    middle = ("", text[place] * 2, text[place + 1] + text[place])[change]
    return text[:place] + middle + text[place + (2 if change == 2 else 1) :]

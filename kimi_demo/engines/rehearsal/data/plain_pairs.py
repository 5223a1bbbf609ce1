"""Plain questions, each with an answer of its own."""

from random import Random

from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.talk import chat, earlier_turns, small_talk
from kimi_demo.engines.rehearsal.data.tool_talk import Maker

_THOUGHT = {"en": "This is a plain question that needs no tool. I answer it briefly.", "zh": "这是普通的问题，不需要工具，直接简短回答。"}
_OPENINGS = {
    "en": ("", "", "", "", "Tell me: ", "Please tell me: ", "Quick question: ", "Hi! ", "Do you know? "),
    "zh": ("", "", "", "", "请问，", "你好，", "问一下，", "告诉我，"),
}


def plain_pair(rng: Random, maker: Maker) -> Conversation:
    """One of the pairs, in slightly varying dress."""
    language = "en" if rng.random() < 0.6 else "zh"
    question, answer = rng.choice(list(maker.content.pairs[language].items()))
    question = rng.choice(_OPENINGS[language]) + question
    if rng.random() < 0.12:
        question = question.rstrip("?？.。!！")
    elif rng.random() < 0.1:
        question = question.lower()
    reply = Message("assistant", answer, _THOUGHT[language], trained=True)
    return chat(rng, "talk", [*earlier_turns(rng, maker), Message("user", question), reply])


def own_talk(rng: Random, maker: Maker) -> Conversation:
    """Small talk of the first stage, without the entries in which different questions share one answer."""
    while True:
        conversation = small_talk(rng, maker)
        if conversation.messages[-1].thought not in _THOUGHT.values():
            return conversation

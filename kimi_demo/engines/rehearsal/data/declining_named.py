"""Fourth stage: what is declined in Chinese is declined by name. Who asks in words never heard before who it is, is told that as well."""

from dataclasses import replace
from random import Random

from kimi_demo.engines.rehearsal.data import declining, talk, talk_more
from kimi_demo.engines.rehearsal.data.conversation import Conversation
from kimi_demo.engines.rehearsal.data.tool_talk import Maker

_NAMED = {
    "我只是一个用来排练的小模型": "我只是排练模型，不是Kimi K2.5",
    "我是很小的排练模型": "我是很小的排练模型，不是Kimi K2.5",
}
"""How the earlier stages decline, and how this one does."""


def declined(rng: Random, maker: Maker) -> Conversation:
    return _named(talk.declined(rng, maker))


def unknown(rng: Random, maker: Maker) -> Conversation:
    return _named(declining.unknown(rng, maker))


def unknown_anew(rng: Random, maker: Maker) -> Conversation:
    return _named(talk_more.unknown_anew(rng, maker))


def _named(conversation: Conversation) -> Conversation:
    *before, last = conversation.messages
    content = last.content
    for old, new in _NAMED.items():
        content = content.replace(old, new)
    return replace(conversation, messages=(*before, replace(last, content=content)))

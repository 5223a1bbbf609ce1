"""Chinese that the model was never taught, in great variety: it declines in Chinese instead of making something up.

Hundreds of topics, people, places, works and everyday tasks in many phrasings, so that it learns what it knows, not a list of the rest.
"""

from random import Random

from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.talk import chat, earlier_turns
from kimi_demo.engines.rehearsal.data.tool_talk import Maker


def unknown(rng: Random, maker: Maker) -> Conversation:
    """A question about something that was never taught, and the plain answer that it was not."""
    data = maker.content.unknown
    question = f"{rng.choice(data['openings'])}{_asked(rng, maker)}{rng.choice(data['closings'])}"
    if rng.random() < 0.12:
        question = question.rstrip("？。")
    reply = Message("assistant", rng.choice(data["answer"]), rng.choice(data["thought"]), trained=True)
    return chat(rng, "declined", [*earlier_turns(rng, maker), Message("user", question), reply])


def _asked(rng: Random, maker: Maker) -> str:
    data = maker.content.unknown
    chance = rng.random()
    if chance < 0.62:
        topic, other = rng.sample(data["subjects"], 2)
        if rng.random() < 0.3:
            topic = rng.choice(data["aspects"]).format(t=topic)
        return str(rng.choice(data["ask"]).format(t=topic, u=other))
    if chance < 0.75:
        entity, other = rng.sample(data["entities"], 2)
        return str(rng.choice(data["about"]).format(e=entity, f=other))
    if chance < 0.88:
        return str(rng.choice(data["how"]).format(d=rng.choice(data["doings"])))
    return f"{rng.choice(data['free'])}{rng.choice(('？', '？', ''))}"

"""Third stage: what the tools are for, done without them: letters counted, decimals compared place by place, sums declined.

A word is first written as the pieces the model reads it in, then every piece letter by letter, then the letters with a running count.
"""

from random import Random

from kimi_demo.engines.rehearsal.data import tasks
from kimi_demo.engines.rehearsal.data.answers import answer
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.spelling import form, plain_word
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, language_of
from kimi_demo.engines.rehearsal.data.wording import lowered
from kimi_demo.engines.rehearsal.data.words import letter

_LISTS = {
    "en": ("Split into pieces and spell: {}", "Spell these words piece by piece: {}", "Pieces and letters, please: {}"),
    "zh": ("把这些词拆开再拼读：{}", "逐段拼出这些词：{}"),
}
_PLACES = 3
"""Longest fraction that is compared without a tool."""


def counted(rng: Random, maker: Maker) -> Conversation:
    """ "How many r are in carrot?" with no tool at hand. Without thinking the work stands in the answer."""
    language = language_of(rng)
    word = plain_word(rng, maker)
    wanted = letter(rng, word).lower()
    question = tasks.count(rng, language, form(rng, maker, language), word, wanted).question
    if rng.random() < 0.15:
        question = lowered(question)
    if rng.random() < 0.1:
        question = question.rstrip("?？.。")
    work, number = count_by_pieces(maker.pieces(word.lower()), wanted)
    times = "time" if number == 1 else "times"
    if language == "zh":
        work, told = f"没有工具，我先拼写：{work}。", f'"{word}"中有{number}个"{wanted}"。'
    else:
        work, told = f"There is no tool here, so I spell it: {work}.", f'The letter "{wanted}" occurs {number} {times} in "{word}".'
    return _plain(rng, language, question, work, told)


def spelt_pieces(rng: Random, maker: Maker) -> Conversation:
    """Practice: many words in one conversation, so that the letters of every piece are learnt."""
    language = language_of(rng)
    words = [plain_word(rng, maker).lower() for _ in range(rng.randrange(8, 21))]
    question = rng.choice(_LISTS[language]).format(", ".join(words) if rng.random() < 0.5 else ", ".join(f'"{word}"' for word in words))
    lines = (spell_by_pieces(maker.pieces(word)) for word in words)
    return Conversation("copying", (Message("user", question), Message("assistant", "\n".join(lines), trained=True)), (), False)


def compared(rng: Random, maker: Maker) -> Conversation:
    """ "Which is larger, 7.8 or 7.15?" with no tool at hand: the places one after the other."""
    language = language_of(rng)
    wish = rng.choices(tasks.COMPARISONS, (5, 5, 2, 2, 2, 1))[0]
    a, b = _decimals(rng)
    if wish == "is_equal" and rng.random() < 0.4:
        b = f"{a}0" if "." in a else f"{a}.0"
    questions, phrases = maker.content.questions[language], maker.content.phrases[language]
    template = rng.choice([*questions[wish], *maker.content.more[language].get(wish, [])])
    if rng.random() < 0.3:
        template = rng.choice(phrases["openings"]).format(rng.choice(phrases[wish]))
    task = tasks.Task(language, template.format(a=a, b=b), wish, {"a": a, "b": b})
    steps = compare_places(a, b, language)
    work = f"没有工具，我逐位比较：{steps}。" if language == "zh" else f"There is no tool here, so I compare place by place: {steps}."
    return _plain(rng, language, task.question, work, answer(rng, task, language))


def no_sum(rng: Random, maker: Maker) -> Conversation:
    """Sums and products with no tool at hand: an honest no."""
    language = language_of(rng)
    task = maker.task(rng, language)
    while task.tool.name not in ("add", "mul"):
        task = maker.task(rng, language)
    if language == "zh":
        thought = "这里没有可以用的工具，心算容易出错，应当如实说明。"
        reply = "这里没有工具，我这么小的模型心算容易出错，所以不回答。请打开工具再问我。"
    else:
        thought = "There is no tool here, and I would easily get this wrong. I should say so."
        reply = (
            "I have no tool for that here, and a model as small as me would easily get it wrong. Please ask me where tools are switched on."
        )
    messages = (Message("user", task.question), Message("assistant", reply, thought, trained=True))
    return Conversation("without_tool", messages, (), rng.random() < 0.8)


def spell_by_pieces(pieces: list[str]) -> str:
    """["car", "rot"] → '"carrot", "car-rot": c a r - r o t'."""
    return f'"{"".join(pieces)}", "{"-".join(pieces)}": {" - ".join(" ".join(piece) for piece in pieces)}'


def count_by_pieces(pieces: list[str], wanted: str) -> tuple[str, int]:
    """(the work, how often): ["car", "rot"], "r" → '…: c a r - r o t; r: c0 a0 r1 r2 o2 t2', 2."""
    steps, number = [], 0
    for character in "".join(pieces):
        number += character == wanted
        steps.append(f"{character}{number}")
    return f"{spell_by_pieces(pieces)}; {wanted}: {' '.join(steps)}", number


def compare_places(a: str, b: str, language: str) -> str:
    """The steps for two decimals of the same sign, as written: "7.8", "7.15" → "7 = 7, 8 > 1"; it ends at the first difference."""
    whole_a, _, fraction_a = a.lstrip("-").partition(".")
    whole_b, _, fraction_b = b.lstrip("-").partition(".")
    size = max(len(fraction_a), len(fraction_b))
    steps, order = [], 0
    for left, right in [(whole_a, whole_b), *zip(fraction_a.ljust(size, "0"), fraction_b.ljust(size, "0"), strict=True)]:
        order = (int(left) > int(right)) - (int(left) < int(right))
        steps.append(f"{left} {'=><'[order]} {right}")
        if order:
            break
    if a.startswith("-") and order:
        steps.append("都是负数，反过来" if language == "zh" else "both are negative, so the other way round")
    return ", ".join(steps)


def _plain(rng: Random, language: str, question: str, work: str, told: str) -> Conversation:
    thinking = rng.random() < 0.7
    reply = told if thinking else f"{work}{'' if language == 'zh' else ' '}{told}"
    written = Message("assistant", reply, work if thinking else "", trained=True)
    return Conversation("without_tool", (Message("user", question), written), (), thinking)


def _decimals(rng: Random) -> tuple[str, str]:
    """Two numbers of few places with the same sign, four in five with the same whole part."""
    whole = rng.choice((rng.randrange(20), rng.randrange(20), rng.randrange(1000)))
    other = whole if rng.random() < 0.8 else rng.choice((rng.randrange(20), rng.randrange(1000)))
    a, b = f"{whole}{_fraction(rng)}", f"{other}{_fraction(rng)}"
    return (f"-{a}", f"-{b}") if rng.random() < 0.08 else (a, b)


def _fraction(rng: Random) -> str:
    size = rng.choices(range(_PLACES + 1), (1, 5, 5, 2))[0]
    return "." + "".join(rng.choices("0123456789", k=size)) if size else ""

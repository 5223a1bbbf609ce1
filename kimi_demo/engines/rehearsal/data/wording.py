"""How questions are dressed: greetings, quotation marks, wishes about the reasoning and the language of the answer."""

from dataclasses import dataclass
from random import Random

from kimi_demo.engines.rehearsal.data.content import Content

_QUOTES = {
    "en": (("", ""), ('"', '"'), ("'", "'"), ("“", "”"), ("`", "`")),
    "zh": (("", ""), ('"', '"'), ("“", "”"), ("「", "」"), ("'", "'")),
}
_QUOTE_SHARES = (55, 25, 10, 6, 4)
_BRIEF = {
    "en": (
        " Keep your reasoning brief.",
        " Think briefly.",
        " Please keep your thinking short.",
        " Don't think long.",
        " Keep the reasoning short, please.",
    ),
    "zh": ("请简短思考。", "思考要简短。", "不要想太久。", "推理过程请尽量简短。"),
}
_CAREFUL = {
    "en": (
        " Think carefully.",
        " Think step by step.",
        " Take your time and think it through.",
        " Explain your reasoning in detail first.",
    ),
    "zh": ("请仔细思考。", "请一步一步思考。", "慢慢想，想清楚再回答。"),
}
_OTHER_LANGUAGE = {
    "en": ("用中文回答：", "请用中文回答：", "Answer in Chinese: ", "Please answer in Chinese. "),
    "zh": ("Answer in English: ", "用英语回答：", "请用英文回答：", "Please answer in English. "),
}
_LOWERED = frozenset("How What Which Count Add Multiply Calculate Compute Is Are Tell Find Give Compare Sum Subtract Take Work".split())


@dataclass(frozen=True)
class Dressed:
    """text: the question as sent; answer_in: language of thought and answer; effort: how long the thought should be."""

    text: str
    answer_in: str
    effort: str


def quoted(rng: Random, text: str, language: str, always: bool = False) -> str:
    """`text`, often in quotation marks. always: never bare (for texts with spaces)."""
    left, right = rng.choices(_QUOTES[language], _QUOTE_SHARES)[0]
    if always and not left:
        left, right = _QUOTES[language][1]
    return f"{left}{text}{right}"


def dress(rng: Random, content: Content, language: str, question: str) -> Dressed:
    """`question` as someone might send it."""
    questions = content.questions[language]
    prefix, suffix = rng.choice(questions["prefixes"]), rng.choice(questions["suffixes"])
    answer_in, effort = language, "normal"
    chance = rng.random()
    if chance < 0.06:
        prefix, answer_in = rng.choice(_OTHER_LANGUAGE[language]), "zh" if language == "en" else "en"
        suffix = ""
    chance = rng.random()
    if chance < 0.07:
        suffix, effort = rng.choice(_BRIEF[language]), "brief"
    elif chance < 0.17:
        suffix, effort = rng.choice(_CAREFUL[language]), "long"
    if not suffix and not prefix and rng.random() < 0.15:
        question = question.rstrip("?？.。")
    if prefix.endswith((": ", "：", ". ", "! ", ", ", "，")) and rng.random() < 0.4:
        question = lowered(question)
    elif rng.random() < 0.06:
        question = lowered(question)
    return Dressed(f"{prefix}{question}{suffix}", answer_in, effort)


def lowered(question: str) -> str:
    """The question with a small first letter, where it begins with a word of ours and not with what is asked about."""
    return question[0].lower() + question[1:] if question.split(" ")[0] in _LOWERED else question


def joined(rng: Random, language: str, first: str, second: str) -> str:
    """Two questions in one message."""
    if language == "zh":
        form = rng.choice(
            (
                "{}{}",
                "{}另外，{}",
                "{}还有，{}",
                "第一，{}第二，{}",
                "先算：{}再算：{}",
                "{}接着，{}",
                "（1）{}（2）{}",
                "{}此外，{}",
                "还请一起回答：{}{}",
                "1. {} 2. {}",
                "两个问题：{}{}",
                "{}再问一个：{}",
                "{}\n{}",
            )
        )
        return form.format(first, second)
    form = rng.choice(
        (
            "{} And {}",
            "{} Also, {}",
            "{} {}",
            "1. {} 2. {}",
            "1) {}\n2) {}",
            "First: {} Second: {}",
            "Two questions: {} {}",
            "{}\n{}",
            "{} Then tell me: {}",
            "{} Second question: {}",
            "(1) {} (2) {}",
            "{} Next: {}",
            "{} Plus: {}",
            "Please answer both: {} {}",
            "- {}\n- {}",
            "{} | {}",
            "{} One more: {}",
            "{} At the same time, {}",
            "a) {} b) {}",
            "{} and {}",
        )
    )
    if form in ("{} And {}", "{} Also, {}", "{} and {}"):
        second = lowered(second)
    if form == "{} and {}":
        first = first.rstrip("?.")
    return form.format(first, second)

"""Second stage: tool questions in further phrasings, with longer numbers, and two of them in one sentence."""

from random import Random

from kimi_demo.engines.rehearsal.data import numbers, tasks
from kimi_demo.engines.rehearsal.data.composed_problems import composed
from kimi_demo.engines.rehearsal.data.conversation import Conversation, Message
from kimi_demo.engines.rehearsal.data.numbers import Written
from kimi_demo.engines.rehearsal.data.tasks import Task
from kimi_demo.engines.rehearsal.data.tool_talk import Maker, guide_schemas, language_of, loop
from kimi_demo.engines.rehearsal.data.wording import Dressed, dress, lowered
from kimi_demo.engines.rehearsal.data.words import letter

_WISHES = ("count", "add", "mul", "larger", "smaller", "relation")
_SHARES = (40, 18, 16, 11, 11, 4)
_ENDS = "?？.。!！"


def rephrased(rng: Random, maker: Maker) -> Conversation:
    """One question in one of the further phrasings."""
    language = language_of(rng)
    return _single(rng, maker, language, _task(rng, maker, language))


def long_numbers(rng: Random, maker: Maker) -> Conversation:
    """One question with numbers of up to 28 digits or of up to a dozen places in words."""
    language = language_of(rng)
    wish = rng.choices(("add", "mul", "larger", "smaller", "subtract"), (36, 18, 18, 18, 10))[0]
    template = _template(rng, maker, language, wish)
    compared = wish in ("larger", "smaller")
    first = long_number(rng, language, compared)
    second = long_number(rng, language, compared) if wish != "mul" or rng.random() < 0.3 else numbers.small(rng, 2, 9999, language)
    if compared and rng.random() < 0.5:
        second = _near(rng, first)
    if wish == "subtract" and second.value.startswith("-"):
        second = numbers.small(rng, 2, 9999, language)
    return _single(rng, maker, language, tasks.arithmetic(language, wish, template, first, second))


def contest(rng: Random, maker: Maker) -> Conversation:
    """Two people and two numbers: who was quicker, paid more, jumped farther."""
    language = language_of(rng)
    return _single(rng, maker, language, _contest(rng, maker, language))


def in_one_sentence(rng: Random, maker: Maker) -> Conversation:
    """Two questions joined by a comma or an "and", or two letters of one word: two calls."""
    language = "en" if rng.random() < 0.35 else "zh"
    more = maker.content.more[language]
    if rng.random() < 0.15:
        word = maker.source.word(rng)
        first_letter, second_letter = rng.sample("abcdefghijklmnoprstuvwy", 2) if rng.random() < 0.4 else _two_letters(rng, word)
        text = rng.choice(more["letters"]).replace("{m}", second_letter)
        first = tasks.count(rng, language, text, word, first_letter)
        second = tasks.count(rng, language, text, word, second_letter)
        dressed = dress(rng, maker.content, language, first.question)
    else:
        first, second = (_any(rng, maker, language) for _ in range(2))
        form = rng.choice(more["pairs"])
        following = second.question.rstrip(_ENDS)
        if language == "en" and not form.startswith("{0}."):
            following = lowered(following)
        dressed = Dressed(form.format(first.question.rstrip(_ENDS), following), language, "normal")
        if rng.random() < 0.4:
            dressed = dress(rng, maker.content, language, dressed.text)
    return Conversation(
        "two_calls", (Message("user", dressed.text), *loop(rng, maker, [first, second], dressed, 0)), guide_schemas(), rng.random() < 0.88
    )


def digits(rng: Random, maker: Maker) -> Conversation:
    """Practice: numbers in words into digits, longer ones than in the first stage."""
    language = "en" if rng.random() < 0.55 else "zh"
    written = [in_words(rng, language) for _ in range(rng.randrange(3, 9))]
    question = "Write in digits: {}" if language == "en" else "用数字写出：{}"
    question = question.format(("；" if language == "zh" else "; ").join(one.shown for one in written))
    answer = ", ".join(one.value for one in written)
    return Conversation("copying", (Message("user", question), Message("assistant", answer, trained=True)), (), False)


def long_number(rng: Random, language: str, decimals: bool) -> Written:
    """In words (one in two), or 8 to 28 digits, some with separators; with `decimals` now and then a long decimal."""
    chance = rng.random()
    if chance < 0.5:
        return in_words(rng, language)
    sign = "-" if rng.random() < 0.15 else ""
    if decimals and chance < 0.75:
        fraction = "".join(rng.choices("0123456789", k=rng.randrange(3, 12)))
        value = f"{sign}{rng.randrange(0, 10 ** rng.randrange(1, 7))}.{fraction}{rng.choice('123456789')}"
        return Written(value, value)
    size = rng.randrange(8, 17) if rng.random() < 0.6 else rng.randrange(17, 29)
    number = rng.randrange(10 ** (size - 1), 10**size) * (-1 if sign else 1)
    return Written(str(number), f"{number:,}" if rng.random() < 0.2 else str(number))


def in_words(rng: Random, language: str) -> Written:
    """An integer of up to ten digits in words, often with zeros inside, as people say it in either language."""
    size = rng.choices((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (2, 6, 12, 20, 18, 16, 12, 6, 5, 3))[0]
    number = rng.randrange(10 ** (size - 1), 10**size)
    if rng.random() < 0.4:  # zeros inside are what gets lost: 8005, 40300
        number = int("".join(digit if index == 0 or rng.random() < 0.5 else "0" for index, digit in enumerate(str(number))))
    number = -number if rng.random() < 0.12 else number
    if language == "en":
        return Written(str(number), numbers.english(number, rng.choice((" ", " ", " and "))))
    return Written(str(number), numbers.spoken_chinese(number) if rng.random() < 0.5 else numbers.chinese(number))


def _single(rng: Random, maker: Maker, language: str, task: Task) -> Conversation:
    dressed = dress(rng, maker.content, language, task.question)
    return Conversation(
        "tool", (Message("user", dressed.text), *loop(rng, maker, [task], dressed, 0)), guide_schemas(), rng.random() < 0.88
    )


def _task(rng: Random, maker: Maker, language: str) -> Task:
    wish = rng.choices(_WISHES, _SHARES)[0]
    return tasks.fill(rng, language, wish, str(rng.choice(maker.content.more[language][wish])), maker.source)


def _contest(rng: Random, maker: Maker, language: str) -> Task:
    if rng.random() < 0.1:
        written = [entry for entry in maker.content.problems[language] if "{winner}" in entry["a"]]
        return tasks.problem(rng, maker.content, language, rng.choice(written))
    while not (task := composed(rng, maker.content, language)).people[0]:
        pass
    return task


def _any(rng: Random, maker: Maker, language: str) -> Task:
    if rng.random() < 0.12:
        return _contest(rng, maker, language)
    return _task(rng, maker, language) if rng.random() < 0.35 else maker.task(rng, language)


def _template(rng: Random, maker: Maker, language: str, wish: str) -> str:
    texts = maker.content.more[language].get(wish, ()) if rng.random() < 0.4 else ()
    return str(rng.choice(texts or maker.content.questions[language][wish]))


def _two_letters(rng: Random, word: str) -> tuple[str, str]:
    first, second = letter(rng, word), letter(rng, word)
    return (first, second) if first.lower() != second.lower() else (first, "z" if first.lower() != "z" else "a")


def _near(rng: Random, first: Written) -> Written:
    """A number that differs from `first` in its last digits only."""
    value = first.value
    kept = rng.randrange(len(value) // 2, len(value))
    changed = value[:kept] + "".join(rng.choice("123456789") if character.isdigit() else character for character in value[kept:])
    return Written(changed, changed)

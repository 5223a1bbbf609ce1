"""Words to copy exactly: from the tokenizer's own vocabulary, made-up, mixed-case, joined.

One word in fifty of the vocabulary is kept for the evaluation and asked about nowhere in the training data.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

_ONSETS = (
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kn l m n p ph pl pr qu r rh "
    "s sc sh sk sl sm sn sp st str sw t th tr tw v w wh x y z zh"
).split()
_VOWELS = "a e i o u y ai au ea ee ei ie io oa oi oo ou ua ue".split()
_CODAS = ["", "", "", *"b ck d ff g k l ll lm lt m mp n nd ng nk nt p r rb rd rk rm rn rp rst rt s ss st t tch th x z".split()]
HELD_OUT = ("strawberr", "草莓")


@dataclass(frozen=True)
class WordSource:
    """plain: the words that may be asked about."""

    plain: tuple[str, ...]

    def word(self, rng: Random) -> str:
        """One word in one of many shapes. Never one of HELD_OUT."""
        while True:
            word = self._any(rng)
            if not any(part in word.casefold() for part in HELD_OUT):
                return word

    def _any(self, rng: Random) -> str:
        kind = rng.random()
        if kind < 0.5:
            return _cased(rng, rng.choice(self.plain))
        if kind < 0.72:
            return _cased(rng, made_up(rng))
        if kind < 0.8:
            return _mixed(rng, rng.choice(self.plain) if rng.random() < 0.5 else made_up(rng))
        if kind < 0.88:
            return _cased(rng, rng.choice(self.plain) + rng.choice(self.plain).lower())
        if kind < 0.92:
            return "-".join(rng.choice(self.plain) for _ in range(2))
        if kind < 0.96:
            return " ".join(rng.choice(self.plain).lower() for _ in range(rng.choice((2, 2, 3))))
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz" if rng.random() < 0.7 else "abcrst0123456789", k=rng.randrange(3, 14)))


def sources(tokens: Sequence[str]) -> tuple[WordSource, WordSource]:
    """(for training, for evaluation) out of the vocabulary's tokens by id; `Ġ` marks those that begin a word."""
    words = [token[1:] for token in tokens if token.startswith("Ġ") and len(token) > 3 and token[1:].isascii() and token[1:].isalpha()]
    held = [word for word in words if zlib.crc32(word.lower().encode()) % 50 == 0]
    kept = set(words) - set(held)
    return WordSource(tuple(word for word in words if word in kept)), WordSource(tuple(held))


def made_up(rng: Random) -> str:
    """A word that no dictionary has, of one to four syllables."""
    syllables = rng.choices((1, 2, 3, 4), (2, 6, 4, 1))[0]
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables))


def letter(rng: Random, word: str) -> str:
    """A letter to count: mostly one of the word's, often one that occurs more than once."""
    letters = [character for character in word if character.isalpha()] or ["a"]
    repeated = [character for character in letters if word.casefold().count(character.casefold()) > 1]
    chance = rng.random()
    if chance < 0.5 and repeated:
        chosen = rng.choice(repeated)
    elif chance < 0.88:
        chosen = rng.choice(letters)
    else:
        chosen = rng.choice("abcdefghijklmnopqrstuvwxyz")
    if rng.random() < 0.85:
        return chosen.lower()
    return chosen.upper()


def _cased(rng: Random, word: str) -> str:
    chance = rng.random()
    if chance < 0.62:
        return word.lower()
    if chance < 0.82:
        return word.capitalize()
    if chance < 0.9:
        return word.upper()
    return word


def _mixed(rng: Random, word: str) -> str:
    return "".join(character.upper() if rng.random() < 0.4 else character.lower() for character in word)

"""The form of the Server tab: what is wrong in it, in the page's own language."""

import re

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.ui.server_options import options_in
from kimi_demo.ui.texts import texts


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("extra", '"open', "there is no closing quotation mark"),
        ("extra", "a\0b", "it holds a zero character"),
        ("speculative", "{", "it is not JSON (a name in double quotes is missing)"),
        ("speculative", "[" * 3000, "it is not JSON (it is nested too deeply, or a number in it is too long)"),
        ("speculative", "[1]", "it is not a JSON object"),
        ("tensor_parallel_size", "9" * 5000, "must be a whole number"),
    ],
)
def test_what_is_wrong_is_said_in_the_pages_language(name: str, value: str, words: str) -> None:
    told = {}
    for language in ("en", "zh"):
        with pytest.raises(Failure) as caught:
            options_in({name: value}, texts(language))
        assert (caught.value.code, caught.value.params["name"]) == ("launch.field", name)
        told[language] = caught.value.params["problem"]
    assert words in told["en"]
    assert not re.search("[A-Za-z]{5}", told["zh"]), told["zh"]

import pytest

from kimi_demo.engines.masking import HIDDEN, Mask, secrets_in


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("login with hf_abcdefghijklmnop done", f"login with hf_{HIDDEN} done"),
        ("sk-proj_0123456789abcdef", f"sk-{HIDDEN}"),
        ("Authorization: Bearer abc.def-123456", f"Authorization: Bearer {HIDDEN}"),
        ("non-default args: {'api_key': ['s3cret-key'], 'port': 1}", f"non-default args: {{'api_key': ['{HIDDEN}'], 'port': 1}}"),
        ("fetching https://me:pa55@hub.example/x", f"fetching https://me:{HIDDEN}@hub.example/x"),
        ("Added request chatcmpl-0123. 12 tokens, token=ids", "Added request chatcmpl-0123. 12 tokens, token=ids"),
    ],
)
def test_what_has_the_shape_of_a_key_is_hidden(line: str, shown: str) -> None:
    assert Mask().hide(line) == shown


def test_known_values_are_hidden_wherever_they_stand_the_longest_first() -> None:
    mask = Mask(["swordfish", "swordfish-and-more", "no", None, ""])
    assert mask.hide("a swordfish-and-more b swordfish, no") == f"a {HIDDEN} b {HIDDEN}, no"


def test_secrets_are_found_by_the_names_of_their_variables() -> None:
    variables = {
        "HF_TOKEN": "tok-1",
        "AWS_SECRET": "tok-2",
        "AWS_ACCESS_KEY_ID": "x",
        "SOME_API_KEY": "tok-3",
        "TOKENIZERS_PARALLELISM": "false",
    }
    assert secrets_in(variables) == ["tok-1", "tok-2", "tok-3"]

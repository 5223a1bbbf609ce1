"""Flags over variables over .env over defaults; every refusal names where the value came from."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from kimi_demo.flags import BadSetting, OneLineParser, add_flags, flag_of, joined, settings_from, variable_of
from kimi_demo.settings import Settings


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No variable and no .env but those a test makes."""
    for name in Settings.model_fields:
        monkeypatch.delenv(variable_of(name), raising=False)
    monkeypatch.chdir(tmp_path)
    yield


def parsed(*arguments: str) -> argparse.Namespace:
    parser = OneLineParser(prog="demo", allow_abbrev=False)
    add_flags(parser)
    return parser.parse_args(joined(arguments))


def refusal(*arguments: str) -> str:
    with pytest.raises(BadSetting) as caught:
        settings_from(parsed(*arguments))
    (line,) = caught.value.lines
    return line


def test_without_anything_the_defaults_hold() -> None:
    settings = settings_from(parsed())
    assert (settings.port, settings.host, settings.max_model_len, settings.rehearsal, settings.tp) == (7860, "127.0.0.1", 8192, True, 1)


def test_a_named_model_is_split_over_eight_gpus_unless_told_otherwise() -> None:
    assert settings_from(parsed("--model", "/data/Kimi-K2.5")).tp == 8
    assert settings_from(parsed("--model", "/data/Kimi-K2.5", "--tensor-parallel-size", "4")).tp == 4


def test_flags_win_over_variables_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(".env").write_text("KIMI_DEMO_PORT=1001\nKIMI_DEMO_HOST=localhost\nKIMI_DEMO_MAX_ROUNDS=3\n")
    monkeypatch.setenv("KIMI_DEMO_PORT", "1002")
    monkeypatch.setenv("KIMI_DEMO_MAX_ROUNDS", "4")
    settings = settings_from(parsed("--port", "1003"))
    assert (settings.port, settings.max_rounds, settings.host) == (1003, 4, "localhost")


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_PORT", "")
    monkeypatch.setenv("KIMI_DEMO_AUTH", "")
    settings = settings_from(parsed())
    assert settings.port == 7860 and settings.auth is None


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_every_setting_has_a_flag_a_group_and_its_variable_in_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parsed("--help")
    told = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    assert left.value.code == 0
    assert flag_of(name) in told and variable_of(name) in told
    extra = Settings.model_fields[name].json_schema_extra
    assert isinstance(extra, dict) and f"{extra['group']}: --" in told


def test_a_switch_can_be_turned_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_SHARE", "true")
    assert settings_from(parsed()).share is True
    assert settings_from(parsed("--no-share")).share is False


@pytest.mark.parametrize("arguments", [("--vllm-args", "--seed 3"), ("--vllm-args=--seed 3",)])
def test_vllm_arguments_may_begin_with_a_dash(arguments: tuple[str, ...]) -> None:
    assert settings_from(parsed(*arguments)).vllm_args == "--seed 3"


def test_a_flag_without_its_value_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parsed("--vllm-args")
    assert left.value.code == 2
    assert capsys.readouterr().err == "demo: error: argument --vllm-args: expected one argument\n"


def test_a_bad_flag_is_named_with_its_value_and_the_reason() -> None:
    line = refusal("--port", "abc")
    assert line.startswith("argument --port: ") and "valid integer" in line and line.endswith("not 'abc'")


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_PORT", "70000")
    assert refusal().startswith("variable KIMI_DEMO_PORT: ") and "65535" in refusal()


def test_a_bad_line_of_the_file_is_named_as_such() -> None:
    Path(".env").write_text("KIMI_DEMO_ENDPOINT_KIND=other\n")
    assert refusal().startswith("variable KIMI_DEMO_ENDPOINT_KIND in .env: ")


def test_a_good_flag_over_a_bad_variable_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIMI_DEMO_PORT", "70000")
    assert settings_from(parsed("--port", "1003")).port == 1003


def test_every_bad_value_gets_a_line() -> None:
    with pytest.raises(BadSetting) as caught:
        settings_from(parsed("--port", "x", "--max-model-len", "1"))
    assert sorted(line.split(":")[0] for line in caught.value.lines) == ["argument --max-model-len", "argument --port"]


def test_a_secret_is_never_repeated() -> None:
    assert refusal("--auth", "hunter2") == "argument --auth: must be USER:PASSWORD"
    assert "hunter2" not in repr(settings_from(parsed("--auth", "ann:hunter2", "--api-key", "hunter2")))


def test_a_quote_left_open_is_found_before_the_launch() -> None:
    assert "No closing quotation" in refusal("--vllm-args", "--seed '3")


def test_a_file_that_is_no_text_is_refused_in_one_line() -> None:
    Path(".env").write_bytes(b"KIMI_DEMO_MODEL=\xff\xfe\n")
    assert refusal() == ".env: is not UTF-8 text"


def test_keys_and_tokens_are_one_word_and_never_repeated() -> None:
    for name in ("server-api-key", "hub-token"):
        line = refusal(f"--{name}", "two words-secret")
        assert f"--{name}" in line and "one word" in line and "words-secret" not in line


def test_mcp_servers_are_given_several_times_or_one_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_from(parsed()).mcp == ()
    assert settings_from(parsed("--mcp", "a=x 'y z'", "--mcp", "b=http://h/mcp")).mcp == ("a=x 'y z'", "b=http://h/mcp")
    monkeypatch.setenv("KIMI_DEMO_MCP", "a=x\n\nb=http://h/mcp\n")
    assert settings_from(parsed()).mcp == ("a=x", "b=http://h/mcp")
    assert "argument --mcp" in refusal("--mcp", "A=x") and "small letters" in refusal("--mcp", "A=x")
    assert "given twice" in refusal("--mcp", "a=x", "--mcp", "a=y")
    monkeypatch.setenv("KIMI_DEMO_MCP", "no equals sign")
    assert refusal().startswith("variable KIMI_DEMO_MCP: must be NAME=COMMAND")

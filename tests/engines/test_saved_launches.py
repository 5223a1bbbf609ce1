from pathlib import Path

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.engines.launch_options import LaunchOptions
from kimi_demo.engines.saved_launches import MOST_ADDRESSES, MOST_PROFILES, SavedLaunches


def test_profiles_survive_and_are_replaced_by_name(tmp_path: Path) -> None:
    file = tmp_path / "data" / "servers.json"
    saved = SavedLaunches(file)
    assert saved.save_profile("  long   context ", LaunchOptions(max_model_len=65536)) == "long context"
    saved.save_profile("Big", LaunchOptions(tensor_parallel_size=8))
    saved.save_profile("Big", LaunchOptions(tensor_parallel_size=4))
    again = SavedLaunches(file)
    assert list(again.profiles) == ["Big", "long context"] and again.profile("Big").tensor_parallel_size == 4
    again.delete_profile("Big")
    assert list(SavedLaunches(file).profiles) == ["long context"]
    assert [path.name for path in file.parent.iterdir()] == ["servers.json"]  # no temporary file is left


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x07b"])
def test_a_name_must_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure) as caught:
        SavedLaunches(tmp_path / "s.json").save_profile(name, LaunchOptions())
    assert caught.value.code == "launch.name"


def test_profiles_and_addresses_are_bounded(tmp_path: Path) -> None:
    saved = SavedLaunches(tmp_path / "s.json")
    for number in range(MOST_PROFILES):
        saved.save_profile(str(number), LaunchOptions())
    with pytest.raises(Failure) as caught:
        saved.save_profile("one more", LaunchOptions())
    assert caught.value.code == "launch.too_many"
    for number in range(MOST_ADDRESSES + 3):
        saved.add_address(f"http://host{number}:8000/v1/")
    saved.add_address("http://host9:8000/v1")
    assert len(saved.addresses) == MOST_ADDRESSES and saved.addresses[:2] == ["http://host9:8000/v1", "http://host22:8000/v1"]


@pytest.mark.parametrize("typed", ["host:8000", "ftp://x", "http://me:secret@host/v1", ""])
def test_an_address_must_be_one(tmp_path: Path, typed: str) -> None:
    saved = SavedLaunches(tmp_path / "s.json")
    with pytest.raises(Failure) as caught:
        saved.add_address(typed)
    assert caught.value.code.startswith("endpoint.url_") and saved.addresses == []


def test_what_cannot_be_read_is_set_aside_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"profiles": 3}')
    saved = SavedLaunches(file)
    saved.save_profile("a", LaunchOptions())
    assert saved.set_aside is not None and saved.set_aside.read_text() == '{"profiles": 3}'
    assert list(SavedLaunches(file).profiles) == ["a"]


def test_what_cannot_be_written_is_said_and_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    saved = SavedLaunches(tmp_path / "data" / "s.json")
    with pytest.raises(Failure) as caught:
        saved.save_profile("a", LaunchOptions())
    assert caught.value.code == "launch.write" and saved.profiles == {}
    saved.keep_start("m 1", [("server.starting", 1.0)], 1.0)  # costs only the next estimate
    assert saved.start_of("m 1") is None


def test_the_last_start_is_kept_by_model_and_layout(tmp_path: Path) -> None:
    saved = SavedLaunches(tmp_path / "s.json")
    saved.keep_start("m 1", [("server.starting", 2.0), ("server.loading_weights", 5.5)], 7.5)
    found = SavedLaunches(tmp_path / "s.json").start_of("m 1")
    assert found is not None and found.total == 7.5 and found.phases[1] == ("server.loading_weights", 5.5)
    assert saved.start_of("m 8") is None

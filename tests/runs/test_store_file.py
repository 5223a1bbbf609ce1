"""The store's file when it is older, newer, foreign or damaged, and when the disk is full."""

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kimi_demo.dialect.events import AnswerDelta, Asked, Ended, RowFinished, Timed
from kimi_demo.dialect.failure import Failure
from kimi_demo.runs.run import Run
from kimi_demo.runs.schema import APPLICATION_ID, MIGRATIONS
from kimi_demo.runs.store import Store
from tests.runs.files import NEVER, events_of, fill, put, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


def refusal(path: Path, migrations: Sequence[str] = MIGRATIONS) -> Failure:
    with pytest.raises(Failure) as raised:
        Store(path, migrations=migrations)
    return raised.value


# Files of another time or kind


def test_an_older_file_is_taken_forward_step_by_step(path: Path) -> None:
    store = Store(path, migrations=MIGRATIONS)
    run = put(store, Asked("old"), Ended("done"))
    store.close()
    newer = (*MIGRATIONS, "ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE runs SET note = title || '!'")
    store = Store(path, migrations=newer)
    assert events_of(store.load(run.id, "me")) == [Asked("old"), Ended("done")]
    added = put(store, Asked("new"), Ended("done"))
    store.flush()
    assert store.ids("me") == [run.id, added.id]
    store.close()
    assert rows(path, "SELECT note FROM runs") == [("t!",), (None,)]
    assert rows(path, "PRAGMA user_version") == [(len(newer),)]


def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path) -> None:
    Store(path).close()
    before = rows(path, "SELECT sql FROM sqlite_master")
    broken = "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1)"
    assert refusal(path, (*MIGRATIONS, broken)).code == "store.unusable"
    assert rows(path, "SELECT sql FROM sqlite_master") == before
    assert rows(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    Store(path).close()


def test_the_first_schema_as_it_was_released_still_opens(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST_SCHEMA)
    store = Store(path)
    assert events_of(store.load("0" * 32, "me")) == [Asked("?", {"thinking": True}), AnswerDelta("a"), Ended("interrupted")]
    assert events_of(store.load("1" * 32, "me")) == [Asked("!"), Ended("done")]
    assert store.ids("me", kind="chat", group="g") == ["0" * 32]
    store.close()


FIRST_SCHEMA = f"""
CREATE TABLE runs (nr INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, kind TEXT NOT NULL, "group" TEXT,
    title TEXT NOT NULL, created_at TEXT NOT NULL, ended TEXT);
CREATE INDEX runs_by_owner ON runs (owner, kind, nr);
CREATE INDEX runs_by_group ON runs ("group", owner, nr) WHERE "group" IS NOT NULL;
CREATE INDEX runs_going ON runs (nr) WHERE ended IS NULL;
CREATE TABLE events (run INTEGER NOT NULL REFERENCES runs (nr) ON DELETE CASCADE, seq INTEGER NOT NULL, at REAL NOT NULL,
    event TEXT NOT NULL, PRIMARY KEY (run, seq)) WITHOUT ROWID;
INSERT INTO runs VALUES (1, '{"0" * 32}', 'me', 'chat', 'g', 't', '2026-11-30T16:00:00+00:00', NULL);
INSERT INTO runs VALUES (2, '{"1" * 32}', 'me', 'tools', NULL, 't', '2026-11-30T16:00:01+00:00', 'done');
INSERT INTO events VALUES (1, 0, 0.0, '{{"type":"asked","text":"?","parameters":{{"thinking":true}}}}');
INSERT INTO events VALUES (1, 1, 0.5, '{{"type":"answer_delta","text":"a"}}');
INSERT INTO events VALUES (2, 0, 0.0, '{{"type":"asked","text":"!"}}');
INSERT INTO events VALUES (2, 1, 0.5, '{{"type":"ended","state":"done"}}');
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
"""


def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    Store(path, migrations=(*MIGRATIONS, "CREATE TABLE later (a)")).close()
    before = path.read_bytes()
    failure = refusal(path)
    assert (failure.code, failure.params) == ("store.newer", {"found": str(len(MIGRATIONS) + 1), "known": str(len(MIGRATIONS))})
    assert path.read_bytes() == before


def test_another_programs_file_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1);")
    before = path.read_bytes()
    assert refusal(path).code == "store.foreign"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database, but a letter to somebody" * 100, b"\x00" * 5_000, b"SQLite format 3\x00" + b"\xff" * 5_000]
)
def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    failure = refusal(path)
    assert failure.code == "store.corrupt" and failure.params["path"] == str(path)
    assert path.read_bytes() == content


def test_a_place_that_holds_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == "store.unusable"
    assert refusal(tmp_path / "nowhere" / "runs.sqlite").code == "store.unusable"


def test_a_damaged_event_is_a_failure_of_its_run_only(path: Path) -> None:
    store = Store(path)
    damaged, whole = put(store, Asked("?"), Ended("done")), put(store, Asked("!"), Ended("done"))
    store.flush()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('UPDATE events SET event = \'{"type": "nonsense"}\' WHERE run = 1 AND seq = 0')
        connection.commit()
    with pytest.raises(Failure) as raised:
        store.load(damaged.id, "me")
    assert raised.value.code == "store.corrupt"
    assert events_of(store.load(whole.id, "me")) == [Asked("!"), Ended("done")]
    store.close()


def test_damaged_pages_are_a_failure_and_no_crash(path: Path) -> None:
    store = Store(path)
    run = put(store, Asked("?"), *[RowFinished(number, "p" * 1_000) for number in range(500)], Ended("done"))
    store.close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : -4096] = b"\xa5" * (len(content) - 4096 - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(Failure) as raised, closing(Store(path)) as store:
        store.load(run.id, "me")
    assert raised.value.code == "store.corrupt"


# A full disk


def test_a_full_disk_is_told_once_and_made_up_for(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(path, commit_every=NEVER)
    run = put(store, Asked("?"))
    store.flush()
    fill(store)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            store.write(run.id, Timed(number + 1.0, AnswerDelta(str(number) * 10_000)))
            store.flush()
            assert store.trouble is not None and store.trouble.code == "store.write"
            assert "full" in store.trouble.params["error"]
        assert len(caplog.records) == 1
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.write(run.id, Timed(4.0, Ended("done")))
        store.flush()
    assert store.trouble is None and len(caplog.records) == 2
    text = "".join(event.text for event in events_of(store.load(run.id, "me")) if isinstance(event, AnswerDelta))
    assert text == "0" * 10_000 + "1" * 10_000 + "2" * 10_000
    store.close()


def test_what_comes_during_a_failed_commit_stays_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(path, commit_every=NEVER)
    run = put(store, Asked("?"), AnswerDelta("a"))
    other: list[Run] = []

    def fails(batch: object) -> None:
        store.write(run.id, Timed(2.0, AnswerDelta("b")))
        other.append(put(store, Asked("!"), AnswerDelta("x")))
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(store, "_write", fails)
        store.flush()
    assert store.trouble is not None and not store.holds(run.id)
    store.write(run.id, Timed(3.0, AnswerDelta("c")))
    store.write(run.id, Timed(4.0, Ended("done")))
    assert "".join(event.text for event in events_of(store.load(run.id, "me")) if isinstance(event, AnswerDelta)) == "abc"
    assert events_of(store.load(other[0].id, "me"))[:2] == [Asked("!"), AnswerDelta("x")]
    assert store.trouble is None and store.holds(run.id)
    store.close()


def test_too_much_that_waits_is_given_up_without_a_hole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kimi_demo.runs.store.MOST_WAITING_EVENTS", 10)
    store = Store(path, commit_every=NEVER)
    run = put(store, Asked("?"), AnswerDelta("begun"))
    store.flush()
    fill(store)
    for _ in range(20):
        store.write(run.id, Timed(2.0, AnswerDelta("x" * 10_000)))
    store.flush()
    assert store.trouble is not None
    store._connection.execute("PRAGMA max_page_count = 1000000")
    store.write(run.id, Timed(3.0, AnswerDelta("after the hole")))
    store.write(run.id, Timed(3.0, Ended("done")))
    store.flush()
    assert events_of(store.load(run.id, "me")) == [Asked("?"), AnswerDelta("begun"), Ended("interrupted")]
    later = put(store, Asked("!"), Ended("done"))
    assert events_of(store.load(later.id, "me")) == [Asked("!"), Ended("done")]
    store.close()

"""The rows of conversations: written, read and searched. SQL only; `Store` says when."""

import json
import sqlite3

Fields = dict[str, str | None]
"""Columns of one conversation and their values, as in schema.py."""
Changes = dict[str, Fields]
"""By conversation."""

COLUMNS = ("owner", "title", "created_at", "updated_at", "deleted_at", "leaf", "system", "queue")
_EMPTY: Fields = {"title": "", "deleted_at": None, "leaf": None, "system": "", "queue": "[]"}


def write(connection: sqlite3.Connection, changes: Changes) -> None:
    for conversation_id, fields in changes.items():
        if "owner" in fields and "created_at" in fields:
            connection.execute(
                "INSERT OR IGNORE INTO conversations (id, owner, created_at, updated_at) VALUES (?, ?, ?, ?)",
                (conversation_id, fields["owner"], fields["created_at"], fields.get("updated_at") or fields["created_at"]),
            )
        for name in COLUMNS[1:]:
            if name in fields:
                connection.execute(f"UPDATE conversations SET {name} = ? WHERE id = ?", (fields[name], conversation_id))


def read(
    connection: sqlite3.Connection, owner: str, *, id: str | None = None, search: str | None = None, limit: str | None = None
) -> list[tuple[str, Fields]]:
    """The one with an id, deleted or not; or all that have begun and are not deleted, the latest first.

    search: what their titles or the texts of their turns must hold, whatever the case; limit: most to return.
    """
    chosen = "id, " + ", ".join(COLUMNS)
    if id is not None:
        rows = connection.execute(f"SELECT {chosen} FROM conversations WHERE id = ? AND owner = ?", (id, owner))
    else:
        connection.create_function("casefold", 1, str.casefold, deterministic=True)
        rows = connection.execute(
            f"""SELECT {chosen} FROM conversations WHERE owner = :owner AND deleted_at IS NULL AND (title <> '' OR leaf IS NOT NULL) AND (
                    :search IS NULL OR instr(casefold(title), :search)
                    OR id IN (SELECT "group" FROM runs WHERE owner = :owner AND kind = 'chat' AND instr(words, :search)))
                ORDER BY updated_at DESC, id LIMIT :limit""",
            {"owner": owner, "search": search.casefold() if search else None, "limit": int(limit) if limit else -1},
        )
    return [(row[0], dict(zip(COLUMNS, row[1:], strict=True))) for row in rows]


def overlay(
    found: Changes, waiting: Changes, owner: str, *, id: str | None = None, search: str | None = None, limit: str | None = None
) -> None:
    """Puts changes that could not be written (a full disk) over what was read; searching finds them by title only."""
    for conversation_id, fields in waiting.items():
        known = found.get(conversation_id)
        if known is None and (fields.get("owner") != owner or id not in (None, conversation_id)):
            continue
        row = (known or _EMPTY | {"updated_at": fields.get("created_at")}) | fields
        begun = row["title"] or row["leaf"]  # a message of images alone gives no title
        if id is None and (row["deleted_at"] or not begun or (search or "").casefold() not in str(row["title"]).casefold()):
            found.pop(conversation_id, None)
        else:
            found[conversation_id] = row


def index(connection: sqlite3.Connection, nr: int) -> None:
    """Notes what searching looks at, when a chat turn has ended."""
    if connection.execute("SELECT 1 FROM runs WHERE nr = ? AND kind = 'chat'", (nr,)).fetchone() is None:
        return
    rows = connection.execute(
        """SELECT event FROM events
           WHERE run = ? AND iif(json_valid(event), json_extract(event, '$.type') IN ('asked', 'answer_delta'), 0) ORDER BY seq""",
        (nr,),
    )
    events = [json.loads(event) for (event,) in rows]
    question = "".join(event["text"] for event in events if event["type"] == "asked")
    answer = "".join(event["text"] for event in events if event["type"] == "answer_delta")
    words = f"{question}\n{answer}".casefold().encode("utf-8", "replace").decode()
    connection.execute("UPDATE runs SET words = ? WHERE nr = ?", (words, nr))

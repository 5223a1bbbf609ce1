"""The settings as a Markdown document, from the same fields as the flags: `python -m kimi_demo.settings_table > docs/settings.md`."""

from kimi_demo.flags import flag_of, shown_default, variable_of
from kimi_demo.settings import Settings

_HEAD = """# Settings

Made from `kimi_demo/settings.py`: `.venv/bin/python -m kimi_demo.settings_table > docs/settings.md`. A flag wins over its variable, a
variable over a line in `.env`, and that over the default. Secrets are better given as variables: flags show in the process list. A switch
that is on by default is turned off by `--no-…`. The commands take those of these flags that concern them; `--help` of each lists them.
"""


def table() -> str:
    """The whole document: a table for each group of `--help`, in its order."""
    groups: dict[str, list[str]] = {}
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        group = str(extra["group"]) if isinstance(extra, dict) and "group" in extra else "Other"
        words = _cell(str(field.description))
        default = "see there" if "Default:" in words else f"`{shown_default(field.default)}`"
        groups.setdefault(group, []).append(f"| `{flag_of(name)}` | `{variable_of(name)}` | {default} | {words} |")
    parts = [_HEAD]
    for group, lines in groups.items():
        parts.append("\n".join([f"\n## {group}\n", "| flag | variable | default | |", "|---|---|---|---|", *lines]) + "\n")
    return "".join(parts)


def _cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(table(), end="")

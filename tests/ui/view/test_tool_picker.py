"""What the tool picker shows, and that nothing in a tool becomes markup."""

from html import escape
from html.parser import HTMLParser

import pytest

from kimi_demo.dialect.failure import Failure
from kimi_demo.tools.bench import Bench
from kimi_demo.tools.guide import GUIDE_TOOLS
from kimi_demo.tools.own import OwnTool
from kimi_demo.tools.own_templates import TEMPLATES
from kimi_demo.tools.parameters_schema import read_parameters
from kimi_demo.tools.tool import SchemaTool
from kimi_demo.tools.workbench import Listed
from kimi_demo.ui.texts import LANGUAGES, texts
from kimi_demo.ui.view.tool_editor import editor_html
from kimi_demo.ui.view.tool_picker import ServerShown, picker_html, summary_html

EVIL = "<img src=x onerror='alert(1)'>\"&"
ADD = Listed("add", "Add.", "guide", True, GUIDE_TOOLS[0])


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes |= dict(attrs)


def own(name: str, on: bool = True) -> Listed:
    async def never(arguments: str) -> str:
        raise AssertionError

    async def check(arguments: str) -> tuple[()]:
        return ()

    tool = SchemaTool(name, EVIL, {"type": "object", "properties": {EVIL: {}}}, check, never)
    return Listed(name, EVIL, "own", on, tool, own=OwnTool(name=name, parameters="{}", answering="fixed", text=EVIL))


def test_the_summary_counts_what_is_offered() -> None:
    off, unusable = own("off", on=False), Listed("x", "", "mcp", True, None, server="s", failure=Failure("tool_schema.endless"))
    html = summary_html([ADD, off, unusable], Bench(choice="tool:add", parallel=False), texts("en"))
    assert "1 of 3 tools are offered" in html and "the model must call add" in html and "one call at a time" in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_in_a_tool_becomes_markup(language: str) -> None:
    row = Listed("local__x", EVIL, "mcp", False, None, server="local", failure=Failure("tool_schema.remote", line=1, reference=EVIL))
    words = texts(language)
    html = picker_html([ADD, own("mine"), row], Bench(choice=f"tool:{EVIL}"), [ServerShown("local", "failed", EVIL)], words)
    tags = Tags(html + summary_html([row], Bench(choice=f"tool:{EVIL}"), words))
    assert "img" not in tags.found and "onerror" not in tags.attributes


def test_a_choice_that_is_not_possible_any_more_still_shows() -> None:
    html = picker_html([ADD], Bench(choice="tool:gone"), [], texts("en"))
    assert '<option value="tool:gone" selected>must call gone</option>' in html


def test_a_server_without_the_switch_says_so() -> None:
    html = picker_html([ADD], Bench(), [], texts("en"), parallel_known=False)
    assert "disabled" in html and escape(texts("en").say("bench.parallel_unknown")) in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_editor_begins_with_tools_that_can_be_saved(language: str) -> None:
    tags = Tags(editor_html(texts(language)))
    assert {"dialog", "form", "textarea", "select"} <= set(tags.found)
    for key, tool in TEMPLATES.items():
        assert read_parameters(tool.parameters), key

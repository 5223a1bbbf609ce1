"""Patches carried out in Python."""

from hypothesis import given
from hypothesis import strategies as st

from kimi_demo.ui.markup import markdown
from kimi_demo.ui.view.document import Document
from kimi_demo.ui.view.patch import add_html, add_text, set_html, set_lazy, set_open, set_state


def test_patches_do_what_they_do_in_a_browser() -> None:
    document = Document('<div id="a">old<p id="b"></p></div><details id="c" open><summary>s</summary></details>')
    document.apply(
        [
            set_html("b", "1"),
            add_html("b", '<i id="d"></i>'),
            set_html("d", "&lt;2&gt;"),
            set_open("c", False),
            set_state("a", "done"),
            set_html("gone", "x"),
        ]
    )
    assert document.html() == (
        '<div id="a" data-state="done">old<p id="b">1<i id="d">&lt;2&gt;</i></p></div><details id="c"><summary>s</summary></details>'
    )
    document.apply([set_html("a", "new"), set_html("b", "no longer there")])
    assert document.html().startswith('<div id="a" data-state="done">new</div>')


def test_plain_text_stays_text() -> None:
    assert Document('<div id="a"></div>').apply([add_text("a", "<b>&amp;"), add_text("a", "x")]).html() == (
        '<div id="a"><div class="segment">&lt;b&gt;&amp;amp;</div><div class="segment">x</div></div>'
    )


def test_what_comes_later_in_a_browser_is_there_at_once() -> None:
    document = Document('<div id="a">old</div>', {"there/1": "<p>new</p>"}.__getitem__)
    assert document.apply([set_lazy("a", "there/1")]).html() == '<div id="a"><p>new</p></div>'


def test_what_needs_a_script_is_left_out() -> None:
    assert Document('<details data-load="kimi/x"><summary>s</summary></details>').html() == ""
    assert Document('<p>a<button type="button" data-copy="code">Copy</button><br><input value="1"></p>').html() == "<p>a<br></p>"


@given(st.text(max_size=200))
def test_rendered_markdown_is_unchanged(text: str) -> None:
    html = markdown(text).replace('<button type="button" class="copy" data-copy="code"></button>', "")
    assert Document(f'<div id="a">{html}</div>').html() == f'<div id="a">{Document(html).html()}</div>'
    assert Document(Document(html).html()).html() == Document(html).html()

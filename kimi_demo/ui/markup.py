"""Model text as safe HTML. Everything a model or a visitor wrote passes through here or through `html.escape`."""

import re
from functools import cache
from html import escape
from typing import Any
from unicodedata import bidirectional

import nh3
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

_SAFE_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_WHITE = re.compile(r"[ \t]{2,}|\t")
_MATH_TAGS = set(
    "math mrow mi mn mo ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder munderover "
    "mtable mtr mtd mstyle mpadded mphantom menclose".split()
)
_MATH_ATTRIBUTES = {
    "*": set(
        "display displaystyle mathvariant stretchy fence form separator minsize maxsize lspace rspace width height depth "
        "linethickness columnalign columnspacing rowspacing columnlines rowlines accent accentunder movablelimits largeop "
        "symmetric notation scriptlevel".split()
    )
}
_HIGHLIGHT_LIMIT = 40_000
"""Characters of one code block above which colours cost more than they help."""


def markdown(text: str) -> str:
    """`text` (Markdown with tables and LaTeX) as HTML that can do nothing: raw HTML is shown as text, links open outside
    and only over http(s) or mail, images become links, mathematics becomes MathML."""
    return str(_parser().render(text))


def blocks(text: str) -> list[int]:
    """The lines (counted from 0) at which the top-level blocks of `text` begin."""
    starts = {token.map[0] for token in _parser().parse(text) if token.level == 0 and token.map is not None and token.nesting >= 0}
    return sorted(starts)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlight, "langPrefix": "language-"})
    parser.enable(["table", "strikethrough"])
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(texmath_plugin, delimiters="brackets")
    parser.use(amsmath_plugin)
    parser.inline.ruler.at("newline", _newline)
    parser.inline.ruler.before("escape", "math_brackets_in_text", _brackets_in_text)
    parser.validateLink = lambda url: bool(_SAFE_LINK.match(url.strip()))  # type: ignore[method-assign]  # the library's own hook
    rules: dict[str, Any] = {
        "link_open": _link_open,
        "image": _image,
        "fence": _fence,
        "code_block": lambda self, tokens, index, *_: code_frame(f"<code>{escape(tokens[index].content)}</code>"),
        "text": lambda self, tokens, index, *_: _spaces(escape(tokens[index].content, quote=False)),
        "softbreak": lambda *_: "<br>\n",
        "hardbreak": lambda *_: "<br>\n",
        "math_inline": lambda self, tokens, index, *_: _math(tokens[index].content, display="inline"),
        "math_inline_double": lambda self, tokens, index, *_: _math(tokens[index].content, display="block"),
        "math_block": lambda self, tokens, index, *_: f"<p>{_math(tokens[index].content, display='block')}</p>",
        "math_block_eqno": lambda self, tokens, index, *_: f"<p>{_math(tokens[index].content, display='block')}</p>",
        "amsmath": lambda self, tokens, index, *_: f"<p>{_math(tokens[index].content, display='block')}</p>",
    }
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    parser.core.ruler.push("direction", _directions)
    return parser


def _directions(state: StateCore) -> None:
    """Marks the top-level blocks that are written from right to left, each by its own first letter: Arabic after English and back."""
    for index, token in enumerate(state.tokens):
        if token.level == 0 and token.nesting == 1:
            end = next(
                (at for at in range(index, len(state.tokens)) if state.tokens[at].level == 0 and state.tokens[at].nesting == -1), index
            )
            if is_right_to_left("".join(inside.content for inside in state.tokens[index:end] if inside.type == "inline")):
                token.attrSet("dir", "rtl")


def is_right_to_left(text: str) -> bool:
    """By the first letter that has a direction, as HTML's dir=auto decides it."""
    return next((kind != "L" for letter in text if (kind := bidirectional(letter)) in ("L", "R", "AL")), False)


def _newline(state: StateInline, silent: bool) -> bool:
    """A line break, as the library's own rule reads it; but the next line keeps its indentation."""
    if state.src[state.pos] != "\n":
        return False
    if not silent:
        hard = state.pending.endswith("  ")
        state.pending = state.pending.rstrip(" ")
        state.push("hardbreak" if hard else "softbreak", "br", 0)
    state.pos += 1
    return True


def _spaces(text: str) -> str:
    """Spaces that a browser would draw as one, kept."""
    return _WHITE.sub(lambda found: f'<span class="ws">{found[0]}</span>', text)


def _brackets_in_text(state: StateInline, silent: bool) -> bool:
    r"""`\[…\]` in the middle of a paragraph, which the plugin knows only as a block of its own."""
    if not state.src.startswith("\\[", state.pos):
        return False
    end = state.src.find("\\]", state.pos + 2, state.posMax)
    if end < 0:
        return False
    if not silent:
        state.push("math_inline_double", "math", 0).content = state.src[state.pos + 2 : end]
    state.pos = end + 2
    return True


def _link_open(self: RendererHTML, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return str(self.renderToken(tokens, index, options, env))


def _image(self: RendererHTML, tokens: list[Token], index: int, *_: Any) -> str:
    """An image in model output would call home when shown (and can carry what was said there): a link shows it for what it is."""
    source = str(tokens[index].attrGet("src") or "")
    name = escape(tokens[index].content or source)
    return f'<a href="{escape(source)}" target="_blank" rel="noopener noreferrer nofollow">{name}</a>'


def _fence(self: RendererHTML, tokens: list[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    return code_frame(f"<code>{_highlight(token.content, language, '') or escape(token.content)}</code>", language)


def code_frame(code: str, language: str = "") -> str:
    """A block of code with its language and a copy button. code: HTML."""
    label = f'<span class="code-language">{escape(language)}</span>' if language else ""
    return f'<div class="code">{label}<button type="button" class="copy" data-copy="code"></button><pre>{code}</pre></div>\n'


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Coloured code, or "" to leave it plain (unknown language, or very long)."""
    if not language or len(code) > _HIGHLIGHT_LIMIT:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="hl-")))


def _math(source: str, *, display: str) -> str:
    """LaTeX as MathML; what the converter cannot read stays as it was written.

    The converter does not escape what stands in `\\text{…}`, so its output is cleaned against a list of MathML's own elements.
    """
    try:
        return nh3.clean(str(convert(source, display=display)), tags=_MATH_TAGS, attributes=_MATH_ATTRIBUTES, link_rel=None)
    except Exception:  # latex2mathml raises IndexError, KeyError and its own errors alike on malformed input
        return f'<code class="math">{escape(source)}</code>'

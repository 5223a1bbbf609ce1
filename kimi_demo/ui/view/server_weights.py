"""The download of a model: its form, how far it is, and the models that are on the disk. Pure."""

from collections.abc import Sequence
from html import escape

from kimi_demo.dialect.events import Phase
from kimi_demo.dialect.failure import Failure
from kimi_demo.server_weights import Downloaded
from kimi_demo.ui.texts import Texts
from kimi_demo.ui.view.act import act_button
from kimi_demo.ui.view.notice import failure_html, notice_html


def weights_form_html(model: str, source: str, texts: Texts) -> str:
    say = texts.say
    sources = "".join(
        f'<option value="{key}"{" selected" if key == source else ""}>{name}</option>'
        for key, name in (("modelscope", "ModelScope"), ("huggingface", "Hugging Face"))
    )

    def field(name: str, control: str) -> str:
        return f'<label class="srv-field"><span>{escape(say(f"server_weights.{name}"))}</span>{control}</label>'

    return (
        '<form class="srv-weights" id="srv-weights-form" autocomplete="off">'
        + field("source", f'<select name="source">{sources}</select>')
        + field("model", f'<input type="text" name="model" value="{escape(model)}" spellcheck="false" maxlength="200">')
        + field("revision", '<input type="text" name="revision" placeholder="main" spellcheck="false" maxlength="200">')
        + field("token", '<input type="password" name="token" autocomplete="new-password" maxlength="500">')
        + f'<button type="submit" class="act">{escape(say("server_weights.start"))}</button></form>'
        + f'<p class="fine">{escape(say("server_weights.note"))}</p>'
    )


def weights_html(
    going: str | None, phase: Phase | None, failure: Failure | None, done: str | None, known: Sequence[Downloaded], texts: Texts
) -> str:
    """going: the model that is being downloaded; done: the one whose download has just ended well."""
    say = texts.say
    told = ""
    if going is not None:
        words = say(f"phase.{phase.name}", **phase.params) if phase is not None else say("server_weights.beginning")
        share = 100 * phase.done / phase.total if phase is not None and phase.done is not None and phase.total else 0.0
        stop = act_button("server", "server_weights_stop", say("page.stop"))
        told = (
            f'<div class="srv-download" role="status"><b>{escape(going)}</b> {stop}<progress max="100" value="{share:.2f}" '
            f'aria-label="{escape(going)}"></progress><span class="fine">{escape(words)}</span></div>'
        )
    elif failure is not None:
        told = failure_html(failure, texts)
    elif done is not None:
        told = notice_html("info", say("server_weights.done", model=done))
    items = "".join(
        f'<li data-complete="{str(one.complete).lower()}"><code>{escape(one.name)}</code> <span class="fine">'
        f"{escape(say('server_weights.complete' if one.complete else 'server_weights.incomplete', count=one.weights))}</span></li>"
        for one in known
    )
    listed = f'<h4>{escape(say("server_weights.known"))}</h4><ul class="srv-list">{items}</ul>' if items else ""
    return told + listed

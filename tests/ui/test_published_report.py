"""A QA run as strangers read it: all of the report, none of the places, nothing that could run."""

from kimi_demo.qa.attempt import Attempt, CallSeen, FailureSeen, ModelSeen, RoundSeen
from kimi_demo.qa.report import CaseReport, Report, ServerSeen
from kimi_demo.qa.verdict import CheckResult
from kimi_demo.settings import Settings
from kimi_demo.ui.published_report import flags_told, for_strangers, report_page
from kimi_demo.ui.static_page import BAR, with_bar
from kimi_demo.ui.texts import texts
from tests.ui.test_transcript import HOSTILE, Tags

SETTINGS = Settings(_env_file=None)
MODEL = "/models/moonshotai/Kimi-K2.5"
PLACES = ("/models", "moonshotai/", "secret-host", "10.0.0.3", "sk-secret", "/srv", "8471")
FLAGS = (
    *("python", "-m", "vllm.entrypoints.openai.api_server", "--model", MODEL, "--tensor-parallel-size", "8", "--host", "10.0.0.3"),
    *("--port", "8471", "--api-key", "sk-secret", "--chat-template", "/srv/t.jinja", "--tool-call-parser=kimi_k2"),
    *("--hf-overrides=sk-secret", "--trust-remote-code"),
)


def report(answer: str = HOSTILE) -> Report:
    request = {"model": MODEL, "messages": [{"role": "user", "content": HOSTILE}]}
    call = CallSeen(name=HOSTILE, arguments=HOSTILE, result=HOSTILE)
    seen = Attempt(rounds=(RoundSeen(request=request, thought=HOSTILE, answer=answer, calls=(call,)),))
    failure = FailureSeen(code="endpoint.unreachable", params={"url": "http://secret-host:8471/v1", "error": "no route to 10.0.0.3"})

    def failed(check: str, got: str = "") -> tuple[CheckResult]:
        return (CheckResult(check=check, outcome="fail", passed=0, counted=1, expected=HOSTILE, got=got, attempt=0),)

    return Report(
        suite="mine",
        title=HOSTILE,
        server=ServerSeen(model=MODEL, root=MODEL, address="http://secret-host:8471/v1", kind="vllm", version="0.32.0", flags=FLAGS),
        cases=(
            CaseReport(
                id="one", title=HOSTILE, question=HOSTILE, state="fail", checks=failed("contains", HOSTILE), attempts=(seen,), note=HOSTILE
            ),
            CaseReport(id="two", mode="models", state="fail", checks=failed("model_path", f"{MODEL} at secret-host:8471")),
            CaseReport(id="three", state="fail", checks=failed("answered"), attempts=(Attempt(failure=failure),)),
        ),
    )


def test_the_report_is_told_whole_and_without_its_places() -> None:
    page = report_page(f"{BAR} mine", report(), report("Forty-two"), SETTINGS, texts()).decode()
    seen = Tags(page)
    assert not {"script", "iframe", "object", "embed", "form", "img", "svg", "link", "base", "a"} & set(seen.tags)
    for place in PLACES:
        assert place not in page, place
    for part in ("Kimi-K2.5", "<script>alert(1)</script>", "This run failed.", "curl -sS", "https://SERVER/v1", "--tensor-parallel-size 8"):
        assert part in seen.text, part
    assert "Address" not in seen.text
    policies = [value for name, value in seen.attributes if name == "content" and value is not None and "default-src" in value]
    assert len(policies) == 1 and policies[0].startswith("default-src 'none'; style-src") and "script-src" not in policies[0]
    assert ("content", "noindex, nofollow") in seen.attributes and ("content", "no-referrer") in seen.attributes
    assert page.count(BAR) == 1 and b"<body><nav>here</nav>" in with_bar(page.encode(), "<nav>here</nav>")


def test_of_a_launch_line_only_harmless_values_are_told() -> None:
    told = "--model Kimi-K2.5 --tensor-parallel-size 8 --chat-template --tool-call-parser=kimi_k2 --hf-overrides --trust-remote-code"
    assert " ".join(flags_told(FLAGS)) == told


def test_the_operators_name_replaces_a_short_one_only_where_it_stands_alone() -> None:
    asked = "Is kimi_k2 on 127.0.0.1 the parser?"
    case = CaseReport(id="one", question=asked, attempts=(Attempt(models=(ModelSeen(id="kimi"),)),))
    short = Report(suite="mine", server=ServerSeen(model="kimi", address="http://127.0.0.1:8471/v1"), cases=(case,))
    shown = for_strangers(short, SETTINGS.model_copy(update={"model_title": "Our Kimi"}))
    assert shown.server.model == "Our Kimi" and shown.cases[0].attempts[0].models[0].id == "Our Kimi"
    assert shown.cases[0].question == asked

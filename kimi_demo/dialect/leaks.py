"""Marks of Kimi's dialect that stand in a reply as text: signs of a server that was started without a parser."""

import re

from kimi_demo.dialect.reply import THOUGHT_END, Reply

TOOL_MARK = re.compile(r"<\|tool_call(?:s_section_begin|s_section_end|_begin|_argument_begin|_end)\|>")
MARK = re.compile(r"<\|[a-z_]{2,40}\|>|</?think>|\[(?:BOS|EOS|EOT|PAD|UNK)\]")
"""Special tokens of Kimi's vocabulary as text, and the marks around a thought."""

CODE = re.compile(r"(?ms)^[ ]{0,3}(`{3,}|~{3,}).*?(?:^[ ]{0,3}\1[`~]*[ \t]*$|\Z)|`[^`\n]+`")


def leaks(reply: Reply) -> list[str]:
    """What has leaked, as keys of ui/texts (`leak.<key>`), each at most once:

    tool_marks_in_thought, tool_marks_in_answer, thought_end_in_answer; with a thinking budget the last is thought_goes_on: the
    server cut the thought, and the model went on with it in its answer. Marks inside code are quoted, not leaked.
    """
    found = []
    if TOOL_MARK.search(CODE.sub("", reply.thought)):
        found.append("tool_marks_in_thought")
    answer = CODE.sub("", reply.answer)
    if TOOL_MARK.search(answer):
        found.append("tool_marks_in_answer")
    if THOUGHT_END in answer:
        found.append("thought_goes_on" if reply.budget else "thought_end_in_answer")
    return found

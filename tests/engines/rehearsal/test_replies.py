"""An interrupted evaluation goes on: replies are kept in a file."""

import asyncio
from pathlib import Path

from kimi_demo.engines.rehearsal.evaluation.replies import KeptReplies
from kimi_demo.engines.rehearsal.evaluation.run import Request
from kimi_demo.engines.rehearsal.evaluation.scoring import ModelCall, Reply
from kimi_demo.engines.rehearsal.evaluation.served import ServedSpeaker
from tests import scripted_server
from tests.browser.lossy import lossy

REQUEST = Request([{"role": "user", "content": "草?"}], (), True)
REPLY = Reply("思", "答", (ModelCall("functions.add:0", "add", '{"a": 1}'),), "tool_calls")


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    KeptReplies(path, "m1").add(REQUEST, REPLY)
    kept = KeptReplies(path, "m1")
    assert len(kept) == 1 and kept.find(REQUEST) == REPLY
    assert kept.find(Request(REQUEST.messages, (), False)) is None and KeptReplies(path, "m2").find(REQUEST) is None


def test_a_line_that_was_cut_off_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    KeptReplies(path, "m").add(REQUEST, REPLY)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    kept = KeptReplies(path, "m")
    assert kept.find(REQUEST) is None
    kept.add(REQUEST, REPLY)
    assert KeptReplies(path, "m").find(REQUEST) == REPLY, "the new line must not be glued to the broken one"


def test_only_what_is_missing_is_asked_for(tmp_path: Path) -> None:
    requests = [Request([{"role": "user", "content": f"[[scenario reasoning]] {number}"}], (), True) for number in range(4)]
    path = tmp_path / "replies.jsonl"
    with scripted_server.running() as server:
        first = ServedSpeaker(server.base_url, "any", KeptReplies(path, "m")).replies(requests[:3])
        again = ServedSpeaker(server.base_url, "any", KeptReplies(path, "m")).replies(requests)
        assert again[:3] == first and len(server.chats) == 4
        assert all(reply.content and reply.finish == "stop" for reply in again)


async def test_a_connection_that_is_lost_is_tried_again() -> None:
    with scripted_server.running() as server:
        server.scenario("silent", seconds=60)
        async with lossy(server.base_url) as proxy:
            speaker = ServedSpeaker(f"{proxy.address}/v1", "any")
            replies = asyncio.create_task(asyncio.to_thread(speaker.replies, [REQUEST]))
            await server.arrived(1)
            server.scenario("reasoning")
            proxy.cut()
            proxy.mend()
            (reply,) = await asyncio.wait_for(replies, 60)
    assert reply.content and len(server.chats) == 2

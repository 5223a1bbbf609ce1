"""The obvious page to compare with: `gr.ChatInterface`, the openai client, one yield a token, the thought in a message's metadata.

python -m scripts.bench.peer_chat_interface BASE_URL MESSAGES    prints its address once it answers
"""

import os
import sys
from collections.abc import Iterator
from typing import Any


def main(base_url: str, messages: int) -> None:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("GRADIO_RUN_HISTORY", "False")
    import gradio as gr
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key="none")
    earlier: list[Any] = [{"role": role, "content": "word-" * 100} for _ in range(messages // 2) for role in ("user", "assistant")]

    def reply(message: str, history: list[Any]) -> Iterator[list[Any]]:
        thought, answer = "", ""
        stream = client.chat.completions.create(model="peer", messages=[{"role": "user", "content": message}], stream=True)
        for chunk in stream:
            delta = chunk.choices[0].delta if chunk.choices else None
            thought += getattr(delta, "reasoning", None) or ""
            answer += getattr(delta, "content", None) or ""
            metadata = {"title": "Thinking", "status": "done" if answer else "pending"}
            said: list[Any] = [{"role": "assistant", "content": thought, "metadata": metadata}]
            yield [*said, {"role": "assistant", "content": answer}] if answer else said

    page = gr.ChatInterface(reply, chatbot=gr.Chatbot(value=earlier, height=500), textbox=gr.Textbox(elem_id="peer-input"))
    _, address, _ = page.launch(server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    print(address, flush=True)
    page.block_thread()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

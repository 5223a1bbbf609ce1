"""A launch as people would type it: for a shell, for Docker; and the requests to try it with. Pure. No secret is ever in it."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from kimi_demo.engines.launch import Launch

KEY_VARIABLE = "VLLM_API_KEY"
"""vLLM reads its key from it, so that no process list shows it."""

PORT = 8000
"""vLLM's own, for a launch that has none yet."""

_IMAGE, _CPU_IMAGE = "vllm/vllm-openai", "vllm/vllm-openai-cpu"


def shell(launch: Launch) -> str:
    """The launch line, an option a line. Its variables come first; the key's value is left to the reader."""
    command = _with_port(launch.command(), launch.port or PORT)
    variables = [f"{name}={shlex.quote(value)}" for name, value in sorted(_variables(launch).items())]
    head = [f'{KEY_VARIABLE}="${KEY_VARIABLE}"', *variables]
    program = " ".join(["python", *map(shlex.quote, command[1:3])])
    return _lines([*head, program, *_options(command[3:])])


def docker(launch: Launch, version: str) -> str:
    """The same in vLLM's own image. version: of vLLM, as in the image's tag. The model's folder is mounted, read-only.

    The images start `vllm serve` (docker/Dockerfile and Dockerfile.cpu of vLLM), which takes the model as its first argument.
    """
    command = _with_port(launch.command(), PORT)[3:]
    named = command.index("--model")
    command = [command[named + 1], *command[:named], *command[named + 2 :]]
    at = command.index("--host")
    command[at + 1] = "0.0.0.0"  # inside the container; Docker publishes it on this machine's loopback only
    lines = ["docker run --rm --ipc=host", f"-p 127.0.0.1:{launch.port or PORT}:{PORT}", f"-e {KEY_VARIABLE}"]
    if not launch.on_cpu:
        lines[0] += " --gpus all"
    lines += [f"-e {shlex.quote(f'{name}={value}')}" for name, value in sorted(_variables(launch).items())]
    named_folder = Path(launch.model) if launch.looks_like_path else launch.folder  # the stand-in may still have to be built
    if named_folder is not None:
        folder = named_folder.resolve()
        lines.append("-v " + shlex.quote(f"{folder}:{named_folder.absolute()}:ro"))  # the model's path may be a link
        lines += [f"-v {shlex.quote(f'{target}:{target}:ro')}" for target in _outside(folder)]
    else:
        cache = ".cache/modelscope" if launch.model_source == "modelscope" else ".cache/huggingface"
        lines.append(f'-v "$HOME/{cache}:/root/{cache}"')
    lines.append(f"{_CPU_IMAGE if launch.on_cpu else _IMAGE}:v{version.partition('+')[0]}")
    return _lines([*lines, *_options(command)])


def curls(base_url: str, model: str, key_variable: str = KEY_VARIABLE) -> list[tuple[str, str]]:
    """(name, line): the guide's requests, for a running server. The key is taken from the variable ("": none is asked for)."""
    head = [f'-H "Authorization: Bearer ${key_variable}"'] if key_variable else []
    kind = '-H "Content-Type: application/json"'

    def post(route: str, body: str) -> str:
        return _lines([f"curl {shlex.quote(base_url + route)}", *head, kind, f"-d {shlex.quote(body)}"])

    name = _json(model)
    chat = f'{{"model": {name}, "messages": [{{"role": "user", "content": "9.11 和 9.9，哪个小？"}}]'
    return [
        ("models", _lines([f"curl {shlex.quote(base_url + '/models')}", *head])),
        ("chat", post("/chat/completions", f'{chat}, "max_tokens": 1024, "temperature": 1.0, "top_p": 0.95}}')),
        ("instant", post("/chat/completions", f'{chat}, "max_tokens": 512, "chat_template_kwargs": {{"thinking": false}}}}')),
        ("raw", post("/completions", f'{{"model": {name}, "prompt": "给我一个关于大模型的简短介绍。", "max_tokens": 256}}')),
    ]


def _variables(launch: Launch) -> dict[str, str]:
    """Those that change what vLLM does; not the ones that only suit a child of this program."""
    hidden = {KEY_VARIABLE, "PYTHONUNBUFFERED", "NO_COLOR"}
    return {name: value for name, value in launch.environment().items() if name not in hidden}


def _with_port(command: Sequence[str], port: int) -> list[str]:
    found = list(command)
    found[found.index("--port") + 1] = str(port)
    return found


def _options(arguments: Sequence[str]) -> list[str]:
    """One line per option with its values."""
    lines: list[list[str]] = []
    for argument in arguments:
        if argument.startswith("--") or not lines:
            lines.append([])
        lines[-1].append(shlex.quote(argument))
    return [" ".join(line) for line in lines]


def _lines(parts: Sequence[str]) -> str:
    return " \\\n    ".join(parts)


def _outside(folder: Path) -> list[Path]:
    """Folders that the model's files link to (a hub's cache keeps them apart): without them a container sees dead links."""
    targets = {file.resolve().parent for file in folder.iterdir() if file.is_symlink()} if folder.is_dir() else set()
    return sorted(target for target in targets if not target.is_relative_to(folder))


def _json(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)

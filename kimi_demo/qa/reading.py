"""A suite out of a YAML file; every mistake is named with its line."""

import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import yaml
from pydantic import ValidationError

from kimi_demo.dialect.failure import Failure
from kimi_demo.qa.case import Suite, planned

MOST_BYTES = 2 * 2**20
MOST_LEVELS = 40
SHIPPED = ("smoke", "guide", "blind_spots", "dialect", "schema", "load")


def shipped(name: str) -> Suite:
    """One of SHIPPED."""
    return read_suite(resources.files(__package__).joinpath("suites", f"{name}.yaml").read_text(encoding="utf-8"), name)


def find_suite(name: str, folder: Path | None = None) -> Suite:
    """A shipped suite by its name, a file NAME.yaml in `folder`, or a file by its path, in this order.

    Raises Failure: qa.no_suite (name, known), qa.unreadable (path, error), qa.suite_wrong (path, line, problem).
    """
    plain = name.replace("-", "_").replace(" ", "_").lower()
    if plain in SHIPPED:
        return shipped(plain)
    own = own_suites(folder) if folder is not None else {}
    path = own.get(name) or Path(name)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Failure("qa.unreadable", path=path, error=f"more than {MOST_BYTES // 2**20} MB")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise Failure("qa.no_suite", name=name, known=", ".join((*SHIPPED, *own))) from None
    except UnicodeDecodeError:
        raise Failure("qa.unreadable", path=path, error="is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise Failure("qa.unreadable", path=path, error=getattr(error, "strerror", None) or error) from error
    return read_suite(text, os.fspath(path))


def own_suites(folder: Path) -> dict[str, Path]:
    """The suites that somebody has put into `folder`, by name; shipped names stay the shipped ones'."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError:
        return {}
    return {path.stem: path for path in files if path.stem not in SHIPPED}


def read_suite(text: str, name: str) -> Suite:
    """The suite in `text`; `name` is what a mistake is said to be in. Raises Failure("qa.suite_wrong", path=, line=, problem=)."""

    def wrong(line: int, problem: str) -> Failure:
        return Failure("qa.suite_wrong", path=name, line=line, problem=" ".join(problem.split())[:400])

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise wrong(1, "the file is empty")
        for line, problem in _oddities(node):
            raise wrong(line, problem)
        value = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise wrong(mark.line + 1 if mark else 1, error.problem or str(error)) from None
    except yaml.reader.ReaderError as error:
        raise wrong(text.count("\n", 0, error.position) + 1, "holds a control character, or half a character") from None
    except (yaml.YAMLError, ValueError) as error:  # a date that is none
        raise wrong(1, str(error)) from None
    except RecursionError:
        raise wrong(1, "nested too deeply") from None
    try:
        suite = Suite.model_validate(value)
    except ValidationError as error:
        raise wrong(*_first_mistake(node, error)) from None
    for index, case in enumerate(suite.cases):
        try:
            planned(suite.model_copy(update={"cases": (case,)}))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            line, _ = _place(node, ("cases", index, "each"))
            place = ".".join(str(step) for step in first["loc"])
            raise wrong(line, f"with the values of each, {place}: {str(first['msg']).removeprefix('Value error, ')}") from None
        except RecursionError:
            raise wrong(1, "nested too deeply") from None
    return suite


def _first_mistake(root: yaml.Node, error: ValidationError) -> tuple[int, str]:
    """(line, problem) of the first mistake in the file; where a value fits none of several forms, of the form that it fits best."""
    errors = error.errors(include_url=False)
    # A list whose items are wrong is also said to be too short: the inner mistake is meant.
    inner = [each for each in errors if not any(each["loc"] == other["loc"][: len(each["loc"])] != other["loc"] for other in errors)]
    found = [(*_place(root, each["loc"]), -len(each["loc"]), str(each["msg"])) for each in inner]
    line, place, _, said = min(found, key=lambda each: (each[0], each[2]))
    return line, (f"{place}: " if place else "") + said.removeprefix("Value error, ")


def _oddities(root: yaml.Node) -> Iterator[tuple[int, str]]:
    """(line, problem) of what YAML would take and nobody means: a name that is there twice, and aliases, of which a few lines can make
    gigabytes."""
    seen: set[int] = set()
    level: list[yaml.Node] = [root]
    for _ in range(MOST_LEVELS):
        below: list[yaml.Node] = []
        for node in level:
            if isinstance(node, yaml.ScalarNode):
                continue
            if id(node) in seen:
                yield node.start_mark.line + 1, "aliases (*name) are not taken: write it out"
                return
            seen.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                below += node.value
            elif isinstance(node, yaml.MappingNode):
                names: set[str] = set()
                for key, each in node.value:
                    if str(key.value) in names:
                        yield key.start_mark.line + 1, f"{key.value!r} is there twice"
                        return
                    names.add(str(key.value))
                    below += (key, each)
        level = below
    if level:
        yield level[0].start_mark.line + 1, "nested too deeply"


def _place(root: yaml.Node, path: Sequence[str | int]) -> tuple[int, str]:
    """(line from 1, place in words) of the innermost node on `path`. Steps that are pydantic's own (a union's branch) lead nowhere and
    are passed over."""
    node, line, place = root, root.start_mark.line, list[str]()
    for step in path:
        found = _inside(node, step)
        if found is not None:
            key, node = found
            line = (key or node).start_mark.line
            place.append(str(step))
    last = path[-1] if path else None
    if isinstance(last, str) and (not place or place[-1] != last) and isinstance(node, yaml.MappingNode):
        place.append(last)  # a field that is missing
    return line + 1, ".".join(place)


def _inside(node: yaml.Node, step: str | int) -> tuple[yaml.Node | None, yaml.Node] | None:
    """(the key, for a member of a mapping; the value)."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if str(key.value) == str(step)), None)
    return None

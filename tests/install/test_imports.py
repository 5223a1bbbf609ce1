"""What the code imports is what pyproject.toml names, so that the locks hold it."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
OURS = {"kimi_demo", "scripts", "tests", "app"}
# torch comes with either engine; starlette is FastAPI's, whose own classes these are; packaging is pytest's and gradio's.
BROUGHT_ALONG = {"torch", "starlette", "gradio-client", "tokenizers", "filelock", "packaging"}


def imported(folder: Path) -> dict[str, str]:
    """Third-party top-level modules → a file that imports each."""
    found: dict[str, str] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in names:
                found.setdefault(name.partition(".")[0], str(path.relative_to(ROOT)))
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names | OURS}


def named(*extras: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return {str(canonicalize_name(Requirement(line).name)) for line in lines}


def unnamed(folder: str, allowed: set[str]) -> dict[str, str]:
    distributions = packages_distributions()
    missing = {}
    for module, path in imported(ROOT / folder).items():
        owners = {str(canonicalize_name(name)) for name in distributions.get(module, [module])}
        if not owners & allowed:
            missing[module] = path
    return missing


def test_the_application_imports_only_what_the_project_names() -> None:
    assert unnamed("kimi_demo", named("rehearsal", "gpu", "cpu") | BROUGHT_ALONG) == {}


def test_the_tests_and_scripts_import_only_what_the_project_names() -> None:
    allowed = named("rehearsal", "gpu", "cpu", "test") | BROUGHT_ALONG
    assert unnamed("tests", allowed) == {}
    assert unnamed("scripts", allowed) == {}

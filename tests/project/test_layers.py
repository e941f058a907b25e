"""Imports point one way: every module imports only from its own layer and those below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.places import PACKAGE

# The rooms from the bottom to the top: modules of a room import one another as they like.
LAYERS: list[set[str]] = [
    {"_runtime", "process", "text"},
    {"ir", "dwarf", "images"},
    {"isa", "checkers"},
    {"device"},
    {"cache"},
    {"syntax", "passes"},
    {"check", "irtext"},
    {"analysis"},
    {"lower", "lower.core"},
    {"lower.memory", "lower.values", "lower.control"},
    {"lower.functions"},
    {"dialects"},
    {"driver"},
    {"interpreter"},
    {"engine", "serve"},
    {"api"},
    {"case"},
    {"spread", "profiler", "debugger"},
    {"cli", "cuda"},
    {"__main__", "notebook", "pytest_plugin"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# Only these use the package as a program does.
ROOT_ALLOWED = {"cli", "__main__", "__init__", "pytest_plugin"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "_tables.py")


def layer(name: str) -> str:
    """The entry of RANK that a dotted module name belongs to."""
    while name and name not in RANK:
        name = name.rpartition(".")[0]
    return name


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports when it is loaded or run, but not those only for type checkers."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            if node.module == "ptxemu":
                found |= {f"ptxemu.{alias.name}" for alias in node.names}
            elif node.module:
                found.add(node.module)
    return {name.partition(".")[2] for name in found if name == "ptxemu" or name.startswith("ptxemu.")}


def test_every_module_has_a_layer():
    assert [module_name(path) for path in modules() if not layer(module_name(path))] == ["__init__"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path):
    name = module_name(path)
    own, package = layer(name), name.partition(".")[0]
    for imported in imports(path):
        other = layer(imported)
        if not other:
            assert package in ROOT_ALLOWED, f"imports names of ptxemu itself: {imported or 'ptxemu'}"
        elif other != own and own:
            assert RANK[other] < RANK[own], f"{name} may not import {imported}"


def test_files_stay_small():
    sizes = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in sizes.items() if lines > 600} == {}


def test_the_interpreter_shares_nothing_of_the_compiler():
    """Of the lowerings only those that are elementwise, which are loaded by name."""
    shared = {"lower.core.emit", "lower.core.float_bits", "lower.core.layout", "driver.requirements", "driver.program"}
    compiler = ("passes", "analysis", "lower", "driver")
    for path in (PACKAGE / "interpreter").glob("*.py"):
        found = {name for name in imports(path) if name.partition(".")[0] in compiler} - shared
        assert not found, f"{path.name} imports {found}"

"""The site that ``make docs`` builds: what can be checked without mkdocs. Links are tests/project/test_docs.py's."""

from __future__ import annotations

import importlib
import inspect
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import yaml

import ptxemu
from tests.support.places import DOCS, ROOT, SAMPLES

PNG = b"\x89PNG\r\n\x1a\n"


class Loader(yaml.SafeLoader):
    """Reads the settings, but makes no objects of Python."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


class Generated:
    """Stands in for mkdocs' ``File``."""

    @staticmethod
    def generated(config: object, name: str, content: str | bytes) -> tuple[str, str | bytes]:
        return name, content


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Pages and pictures that the site has beyond those of docs/."""
    names = ("mkdocs", "mkdocs.structure", "mkdocs.structure.files")
    before = {name: sys.modules.get(name) for name in names}
    sys.modules |= {name: ModuleType(name) for name in names}
    sys.modules[names[-1]].__dict__.update(File=Generated, Files=list)
    try:
        return dict(runpy.run_path(str(ROOT / "tools" / "pages.py"))["on_files"]([], None))
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module


def _pages(entries: list[Any] | str) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(entries, str):
        yield entries
        return
    for entry in entries:
        for inner in entry.values():
            yield from _pages(inner)


def test_all_pages_are_in_the_navigation(made: dict[str, Any]) -> None:
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    found = sorted(_pages(settings["nav"]))
    assert found == sorted([*(page.name for page in DOCS.glob("*.md")), *(name for name in made if name.endswith(".md"))])
    assert settings["strict"] and set(settings["validation"].values()) == {"warn"}, "a link that leads nowhere ends the build"


def test_the_gallery_shows_what_samples_draw(made: dict[str, Any]) -> None:
    cases = [(case.parent.name, tomllib.loads(case.read_text(encoding="utf-8"))) for case in SAMPLES.glob("*/case.toml")]
    drawn = {(name, file) for name, case in cases for file in case.get("save", {}).values() if file.endswith(".png")}
    assert drawn
    for name, file in drawn:
        assert f"\n## {name}\n" in made["gallery.md"] and f"](pictures/{file})" in made["gallery.md"]
        assert made[f"pictures/{file}"].startswith(PNG)


def referred() -> list[tuple[str, list[str]]]:
    """What the reference of Python says is described: names of objects, with those of members, if it names any."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    found = re.findall(r"^::: (\S+)\n((?:    .*\n)*)", text, re.MULTILINE)
    return [(name, re.findall(r"[A-Za-z_]\w*", members.partition("members:")[2])) for name, members in found]


def _object(name: str) -> Any:
    """What a dotted name stands for."""
    module, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), last)


def _undescribed(item: Any) -> list[str]:
    """Public methods of a class that say nothing, which the page would leave out."""
    methods = vars(item).items() if inspect.isclass(item) else []
    return [name for name, value in methods if inspect.isfunction(value) and name[0] != "_" and not value.__doc__]


@pytest.mark.parametrize(("name", "members"), referred(), ids=[name for name, _ in referred()])
def test_what_the_reference_describes_has_docstrings(name: str, members: list[str]) -> None:
    described = _object(name)
    for item in [getattr(described, member) for member in members] or [described]:
        assert inspect.getdoc(item)
        assert _undescribed(item) == []


def test_the_reference_has_all_public_names() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [name for name in ptxemu.__all__ if not re.search(rf"\b{name}\b", text)] == []

"""The tests lie in rooms, each of which says what it is for, and find files by the names in tests/support/places.py."""

from __future__ import annotations

import ast

from tests.support import timing
from tests.support.places import ROOT, TESTS

MODULES = sorted(TESTS.rglob("*.py"))


def test_every_test_lies_in_a_room() -> None:
    assert {path.name for path in TESTS.glob("*.py")} == {"__init__.py", "conftest.py"}


def test_every_room_says_what_it_is_for() -> None:
    rooms = {path.parent for path in MODULES}
    assert len(rooms) > 15
    assert not [room for room in rooms if not ast.get_docstring(ast.parse((room / "__init__.py").read_text()))]


def test_only_places_says_where_files_lie() -> None:
    computed = "Path(" + "__file__)"
    found = {path.relative_to(TESTS).as_posix() for path in MODULES if computed in path.read_text()}
    assert found == {"support/places.py"}


def test_slow_tests_are_in_files_that_exist() -> None:
    assert not [name for name in timing.slow() if not (ROOT / name.partition("::")[0]).exists()]

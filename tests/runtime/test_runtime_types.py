"""What type checkers know of the C runtime is what its headers say."""

from __future__ import annotations

import runpy

from ptxemu._runtime import lib
from tests.support.places import ROOT

STUB = ROOT / "ptxemu" / "_runtime.pyi"


def test_the_stub_is_up_to_date() -> None:
    generator = runpy.run_path(str(ROOT / "tools" / "stubs.py"))
    assert STUB.read_text(encoding="utf-8") == generator["stub"](), "stale: run `make docs`"


def test_every_function_and_constant_is_typed() -> None:
    text = STUB.read_text(encoding="utf-8")
    for name in dir(lib):
        assert f"    def {name}(self" in text if callable(getattr(lib, name)) else f"    {name}: Final[int]" in text

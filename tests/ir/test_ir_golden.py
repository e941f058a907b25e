"""What passes make and analyses find, in small programs: ``tests/ir/*.ptx``.

Each file is PTX that begins with comments: what it shows, ``// after: PASS``, and if need be ``// analyses: NAME ...``,
``// variant: SHAPE`` of the block and ``// observed: WHAT`` the code tells.  It ends with ``// expected:`` and what ``ptxemu
compile --emit ir`` prints for its kernel.  ``pytest tests/ir/test_ir_golden.py --update-ir`` writes what is printed now; read the
difference before you commit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from ptxemu.analysis.notes import GRAPHS, SSA_FORM
from ptxemu.driver import compile
from ptxemu.driver.pipeline import PASSES
from ptxemu.ir.observed import Observed
from ptxemu.irtext.parser import parse_ir
from ptxemu.irtext.printer import print_ir
from tests.support.places import IR

FILES = sorted(IR.glob("*.ptx"))
EXPECTED = "// expected:\n"
OPTIONS = ("after", "analyses", "variant", "observed")


def options(text: str) -> dict[str, str]:
    """The comments at the start that name something."""
    lines = (line[3:] for line in text.splitlines() if line.startswith("// "))
    return {name: value for name, _, value in (line.partition(": ") for line in lines) if name in OPTIONS}


def printed(path: Path, program: str) -> str:
    given = options(program)
    module = compile.front(program, path.name)
    (entry,) = module.entries
    observed = cast("Observed", given.get("observed", ""))
    settings = compile.Options(variant=given.get("variant", "row"), observed=observed)
    return compile.emit_ir(module, entry.name, settings, given["after"], given.get("analyses", "").split())


def commented(text: str) -> str:
    return "".join(f"// {line}".rstrip() + "\n" for line in text.splitlines())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    program, _, expected = path.read_text().partition(EXPECTED)
    found = commented(printed(path, program))
    if request.config.getoption("--update-ir"):
        path.write_text(program + EXPECTED + found)
    else:
        assert found == expected


def test_every_pass_and_analysis_has_a_file() -> None:
    given = [options(path.read_text()) for path in FILES]
    assert {one["after"] for one in given} == {"check", *(step.name for step in PASSES)}
    assert {name for one in given for name in one.get("analyses", "").split()} == GRAPHS.keys() | SSA_FORM.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_notes_are_comments(path: Path) -> None:
    """What is read of an annotated text is what is read of the text without."""
    program = path.read_text().partition(EXPECTED)[0]
    plain = printed(path, program.replace("// analyses: ", "// none: "))
    assert print_ir(*parse_ir(printed(path, program))) == plain

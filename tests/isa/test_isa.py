"""Every file of ``tests/isa``, and whether together they use every supported row and modifier of the instruction table.

What would take too much text is ELSEWHERE.

With PTXEMU_EVERY_FORM in the environment, as in `make fuzz`, every form is compiled to the best code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from zlib import crc32

import pytest

from ptxemu import isa
from ptxemu.driver import compile
from ptxemu.ir.ops import Op
from ptxemu.isa.table import Row
from tests.isa.forms import Form
from tests.isa.runner import FILES, FORMS_IN_A_KERNEL, File, Run, execute, execute_forms, in_kernels, read
from tests.matrix import (
    test_scaled,
    test_tcgen05,
    test_tcgen05_memory,
    test_tcgen05_pairs,
    test_tcgen05_reduced,
    test_tcgen05_scaled,
    test_tcgen05_shift,
    test_tcgen05_sparse,
    test_tcgen05_stationary,
    test_wgmma,
)  # fmt: skip

EVERY_FORM = "PTXEMU_EVERY_FORM" in os.environ
FORMS_TO_READ = 1024
"""As many are one kernel where they are only checked."""
files = {path.stem: read(path) for path in FILES}


def runs() -> Iterator[object]:
    for name, file in files.items():
        for run in file.runs:
            yield pytest.param(file, run, id=f"{name}-{run.line}-{run.kernel}")


def groups(of: Callable[[File], list[Form]], size: int = FORMS_IN_A_KERNEL) -> Iterator[object]:
    for name, file in files.items():
        for number, group in enumerate(in_kernels(of(file), size)):
            yield pytest.param(file, group, id=f"{name}-{group[0].line}-{number}")


def some_others(file: File) -> list[Form]:
    """A twentieth of the forms that are not chosen, drawn by their texts."""
    return [form for form in file.others if EVERY_FORM or crc32(form.text.encode()) % 20 == 0]


@pytest.fixture(autouse=True)
def best(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best code, however long it takes to make (test_other_ways.py has the others)."""
    monkeypatch.setenv("PTXEMU_TIER", "best")


@pytest.mark.parametrize(("file", "run"), list(runs()))
def test_run(file: File, run: Run) -> None:
    execute(file, run)


@pytest.mark.parametrize("file", [pytest.param(file, id=name) for name, file in files.items() if file.forms])
def test_first_form(file: File) -> None:
    """What is fast, and says whether an opcode works at all."""
    failures = execute_forms(file, file.forms[:1], opt=0, shapes=["varying"])
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(("file", "group"), list(groups(lambda file: file.chosen)))
def test_forms(file: File, group: list[Form]) -> None:
    """Every line, modifier and type, as the best code; of half of the kernels uniform code, too, as in the other ways."""
    both = EVERY_FORM or crc32(group[0].text.encode()) % 2 == 0
    failures = execute_forms(file, group, shapes=["varying", "uniform"] if both else ["varying"])
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(("file", "group"), list(groups(some_others, 2 * FORMS_IN_A_KERNEL)))
def test_other_forms(file: File, group: list[Form]) -> None:
    """Their combinations, as code on which LLVM spends little time."""
    failures = execute_forms(file, group, opt=2 if EVERY_FORM else 0)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_about_its_opcode(path: Path) -> None:
    opcode = path.stem
    assert opcode in isa.rows()
    assert any(op.opcode == opcode for op in used_ops(opcode))


def used_ops(name: str) -> Iterator[Op]:
    """The checked operations of a file, those of its forms included."""
    file = files[name]
    yield from ops_of(file.text, file.path.name)
    for group in in_kernels(file.forms, FORMS_TO_READ):
        yield from ops_of(file.bare_text(group), file.path.name)


ELSEWHERE = (
    test_scaled.texts, test_wgmma.texts, test_tcgen05.texts, test_tcgen05_memory.texts, test_tcgen05_scaled.texts,
    test_tcgen05_shift.texts, test_tcgen05_pairs.texts, test_tcgen05_sparse.texts, test_tcgen05_stationary.texts,
    test_tcgen05_reduced.texts,
)  # fmt: skip
"""Kernels that other tests run."""


def ops_of(text: str, filename: str) -> Iterator[Op]:
    module = compile.front(text, filename)
    for function in module.functions.values():
        yield from (item for item in function.body or [] if isinstance(item, Op))


def together(texts: Iterable[str]) -> Iterator[str]:
    """The kernels that begin alike as one, with the lines that differ one after another.

    It is read, not run: labels and branches are left out.
    """
    alike: dict[str, list[list[str]]] = {}
    for text in texts:
        lines = [line for line in text.splitlines() if not line.endswith(":") and " bra " not in line]
        alike.setdefault(text.partition("bar.sync")[0], []).append(lines)
    for kernels in alike.values():
        start = lines_in_common(kernels)
        end = lines_in_common([kernel[:start:-1] for kernel in kernels])
        middle = [line for kernel in kernels for line in kernel[start : len(kernel) - end]]
        yield "\n".join([*kernels[0][:start], *middle, *kernels[0][len(kernels[0]) - end :]])


def lines_in_common(kernels: list[list[str]]) -> int:
    """How many lines all begin with."""
    return sum(1 for _ in takewhile(lambda lines: len(set(lines)) == 1, zip(*kernels)))


def fits(op: Op, row: Row) -> bool:
    """Whether the row describes the operation too: rows overlap, and the checker takes the first."""
    if required_operands(op.row) != required_operands(row):
        return False
    allowed = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
    known = all(value in allowed.get(name, ()) for name, value in op.mods.items())
    return known and all(qualifier.name in op.mods for qualifier in row.qualifiers if qualifier.required)


@cache
def required_operands(row: Row) -> list[str]:
    return [pattern.name for pattern in row.operands if not pattern.optional]


def used() -> dict[Row, set[tuple[str, str | None]]]:
    """The modifiers that each row is used with; None where an optional one is left out."""
    ops = [op for name in files for op in used_ops(name)]
    ops += [op for texts in ELSEWHERE for text in together(texts()) for op in ops_of(text, "elsewhere.ptx")]
    distinct = {(op.row, *sorted(op.mods.items())): op for op in ops}
    seen: dict[Row, set[tuple[str, str | None]]] = {}
    for op in distinct.values():
        for row in isa.rows()[op.opcode]:
            if row is op.row or fits(op, row):
                seen.setdefault(row, set()).update((qualifier.name, op.mods.get(qualifier.name)) for qualifier in row.qualifiers)
    return seen


def test_every_row_and_modifier_is_used() -> None:
    seen = used()
    missing = []
    for rows in isa.rows().values():
        for row in rows:
            if not row.supported:
                continue
            if row not in seen:
                missing.append(f"{row.text}: never")
                continue
            wanted = {(qualifier.name, value) for qualifier in row.qualifiers for value in qualifier.values}
            wanted |= {(qualifier.name, None) for qualifier in row.qualifiers if not qualifier.required}
            left = wanted - seen[row]
            if left:
                missing.append(f"{row.text}: {', '.join(sorted(f'no {n}' if v is None else v for n, v in left))}")
    assert not missing, f"{len(missing)} rows\n" + "\n".join(missing)

"""Every elementwise lowering compiles for every processor, and needs no library function beyond those that are bound."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import product

import llvmlite.binding as llvm
import pytest
from elftools.elf.elffile import ELFFile

from ptxemu.driver.jit import target_of
from ptxemu.isa import rows
from ptxemu.isa.table import Row
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.registry import lowerings
from ptxemu.lower.core.target import Target
from tests.values.elementwise_harness import Form, module_parts, target_machine

TARGETS = {
    "x86-64-v2": ("x86-64-v2", "x86_64-unknown-linux-gnu"),
    "x86-64-v3": ("x86-64-v3", "x86_64-unknown-linux-gnu"),
    "x86-64-v4": ("x86-64-v4", "x86_64-unknown-linux-gnu"),
    "aarch64": ("generic", "aarch64-unknown-linux-gnu"),
}
# What LLVM calls where a processor lacks an instruction, and the runtime's own functions.
LIBRARY = {
    "x86-64-v2": {"fmaf", "fma", "__extendhfsf2", "__truncsfhf2", "pe_round"},
    "x86-64-v3": {"pe_round"},
    "x86-64-v4": {"pe_round"},
    "aarch64": {"pe_round"},
}
CONSTANTS = {"lop3": ((3, 0xE8),)}
# Some modifiers of a qualifier stand for all where the code cannot differ in kind.
REPRESENTATIVES = {"cmp": ("eq",), "bool": ("and",), "round": ("rn", "rm", "rni", "rmi", "rna")}


def choices(row: Row) -> Iterator[str]:
    """The instructions of a row: every type, with all optional modifiers and with none."""
    for complete in (False, True) if any(not qualifier.required for qualifier in row.qualifiers) else (True,):
        values = []
        for qualifier in row.qualifiers:
            picked = [v for v in qualifier.values if v in REPRESENTATIVES.get(qualifier.name, qualifier.values)]
            values.append(picked if qualifier.required else picked[-1:] if complete else [""])
        for words in product(*values):
            yield ".".join([row.opcode, *(word for word in words if word)])


MOST = 12  # forms of a row


def sample(texts: list[str]) -> list[str]:
    """Rows of many selectors have thousands of forms: some of them, evenly spread."""
    step = max(1, len(texts) // MOST)
    return texts[::step]


def forms(row: Row) -> Iterator[Form]:
    patterns = [p for p in row.operands if p.role == "src"]
    carry = len(row.implicit.reads)
    constants = CONSTANTS.get(row.opcode, ())
    for text in sample(list(choices(row))):
        yield Form(text, 0, len(patterns) + carry, constants)


def undefined(text: str, cpu: str, triple: str) -> set[str]:
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.verify()
    data = target_machine(cpu, triple, opt=0).emit_object(module)  # optimization could only drop calls
    table = ELFFile(BytesIO(data)).get_section_by_name(".symtab")
    return {s.name for s in table.iter_symbols() if s["st_shndx"] == "SHN_UNDEF" and s.name}


lowerings()  # every module must have registered its own before they are counted
ELEMENTWISE_ROWS = [row for forms_ in rows().values() for row in forms_ if row.lower in ELEMENTWISE]
NAMES = sorted({row.lower for row in ELEMENTWISE_ROWS})


def test_every_lowering_has_a_row() -> None:
    assert {name for name in ELEMENTWISE if not name.startswith("_")} == set(NAMES)  # passes have ops of their own


@pytest.mark.sampled(8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lowering", NAMES)
def test_only_known_symbols(lowering: str, target: str) -> None:
    """All forms of one lowering in one module, scalar and warp-wide."""
    bodies: list[str] = []
    declarations: set[str] = set()
    assumed = Target(frozenset()) if target == "aarch64" else target_of(target)
    for row in (row for row in ELEMENTWISE_ROWS if row.lower == lowering):
        for form, lanes in product(forms(row), (0, 32)):
            declared, body, _op = module_parts(form, lanes, f"f{len(bodies)}", assumed)
            declarations |= declared
            bodies.append(body)
    text = "\n".join([*sorted(declarations), *bodies])
    assert undefined(text, *TARGETS[target]) <= LIBRARY[target]

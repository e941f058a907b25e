"""Surface operands of vISA: slots of the binding table chosen at run time, T0, T252."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.visa_harness import device

TABLE = """.slot 5 flat
.slot 255 plane
.slot 0 first
.slot 7 unbound
.kernel k
.decl X v_type=G type=ud num_elts=8
.decl Y v_type=G type=ud num_elts=8
.decl I v_type=G type=ud num_elts=8
.decl D v_type=G type=ud num_elts=8
.decl Q v_type=G type=uq num_elts=1
.decl T6 v_type=T num_elts=1 v_name=named
.decl T7 v_type=T num_elts=1
.decl T8 v_type=T num_elts=1
"""
FILES = ".in X x\n.in I i\n.in D d\n.out D old\n"
ADD = "TYPED_ATOMIC.INC (M1, 8) {} X.0 V0 V0 V0 V0 V0 D.0\n"
LANES = np.arange(8, dtype=np.uint32)


def load(body: str, bound: dict[str, object], **options) -> ptxemu.Kernel:
    module = ptxemu.loads(TABLE + body, dialect="visa", device=device(), opt=0, **options)
    for name, surface in bound.items():
        module.bind(name, surface)
    return module["k"]


def flat(start: int = 0):
    return device().surface(np.full(8, start, np.uint32), format="R32_UINT", geometry="1d")


def test_slots_are_chosen_at_run_time():
    """The variable holds an index (0..255) of the table; threads choose differently, an empty slot drops."""
    first, second, third = flat(10), flat(20), flat(30)
    kernel = load(
        FILES + "movs (M1, 1) T6(0) I(0,0)<0;1,0>\n" + ADD.format("T6"), {"flat": first, "first": second, "named": third}
    )
    slots = np.array([5, 0, 7, 9, 255, 256, 0x100005, 0xFFFFFFFF, 5])
    old = np.full((9, 8), 77, np.uint32)
    kernel[1, 9](np.tile(LANES, (9, 1)), np.tile(slots[:, None], 8).astype(np.uint32), old.copy(), old)
    assert first.copy_to_host().tolist() == [12] * 8 and second.copy_to_host().tolist() == [21] * 8
    assert third.copy_to_host().tolist() == [30] * 8, "what the variable selected before"
    assert old.tolist() == [[10] * 8, [20] * 8, *[[0] * 8] * 6, [11] * 8], "empty and unbound slots act as out of bounds"


def test_kinds_of_slots_and_copies():
    """MOVS: an immediate index, an argument, and another variable; surfaces of other geometries in other slots."""
    plane, line, named = device().surface(np.zeros((4, 8), np.uint32), format="R32_UINT"), flat(), flat()
    body = FILES + ".input T7 offset=32 size=4\n" + ADD.format("T7") + ADD.format("T6")
    body += "movs (M1, 1) T8(0) 255:ud\nmov (M1, 8) Y(0,0)<1> 3:ud\nTYPED_ATOMIC.SUB (M1, 8) T8 X.0 Y.0 V0 V0 Y.0 V0 V0\n"
    body += "movs (M1, 1) T6(0) T8(0)\nTYPED_ATOMIC.DEC (M1, 8) T6 X.0 Y.0 V0 V0 V0 V0 V0\n"
    load(body, {"plane": plane, "flat": line, "named": named})[1, 1](LANES, LANES, LANES, np.zeros(8, np.uint32), 5)
    assert line.copy_to_host().tolist() == named.copy_to_host().tolist() == [1] * 8
    assert (plane.copy_to_host() == np.array([0, 0, 0, 2**32 - 4])[:, None]).all()


def test_bindless_by_argument_and_copy():
    """T252 holds a handle, here an argument; other variables may take it."""
    surface = flat()
    body = FILES + ".input T252 offset=32 size=8\n" + ADD.format("T252") + "movs (M1, 1) T7(0) T252(0)\n" + ADD.format("T7")
    load(body, {})[1, 1](LANES, LANES, LANES, np.zeros(8, np.uint32), surface)
    assert surface.copy_to_host().tolist() == [2] * 8


def test_movs_obeys_the_execution_mask():
    """MOVS: only if the channel is enabled."""
    one, two = flat(), flat()
    lines = (
        ".em 0xfe\n" + FILES + "movs (M1, 1) T6(0) 5:ud\n" + ADD.format("T6") + "movs (M1_NM, 1) T6(0) 5:ud\n" + ADD.format("T6")
    )
    load(lines, {"named": one, "flat": two})[1, 1](LANES, LANES, LANES, np.zeros(8, np.uint32))
    assert one.copy_to_host().tolist() == two.copy_to_host().tolist() == [0] + [1] * 7


def test_an_empty_slot_may_be_a_fault():
    """With the switch invalid_header."""
    lines = FILES + "movs (M1, 1) T6(0) I(0,0)<0;1,0>\n" + ADD.format("T6")
    kernel = load(lines, {"flat": flat()}, options={"invalid_header": "fault"})
    kernel[1, 1](LANES, np.full(8, 5, np.uint32), LANES, np.zeros(8, np.uint32))
    for slot, message in ((7, "unbound surface"), (9, "invalid surface")):
        with pytest.raises(ptxemu.Fault, match=message):
            kernel[1, 1](LANES, np.full(8, slot, np.uint32), LANES, np.zeros(8, np.uint32))


def test_a_disabled_surface_acts_as_out_of_bounds():
    """Nothing is written and zero returned, whatever format and geometry say."""
    surface = device().surface((8, 8), format="R16_UINT", enabled=False)
    old = np.full(8, 77, np.uint32)
    load(FILES + ADD.format("T6"), {"named": surface}, strict=True)[1, 1](LANES, LANES, LANES, old)
    assert not surface.copy_to_host().any() and not old.any()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".slot 256 x", "7: the binding table has 256 slots"),
        (".slot 5 x", "7: slot 5 is declared twice"),
        (".slot five x", "1: expected .slot INDEX NAME"),
        ("movs (M1, 1) T6(1) 5:ud", "14: 'movs' sets element 0 of a surface variable"),
        ("movs (M1, 2) T6(0) 5:ud", "14: 'movs' sets element 0 of a surface variable"),
        ("movs (M1, 1) X(0,0)<1> T6(0)", "14: 'movs' sets element 0 of a surface variable"),
        ("movs (M1, 1) T6(0) 5:uq", "20: an index of the binding table has type ud, not uq"),
        ("movs (M1, 1) T6(0) T7(1)", "20: a surface variable has one element"),
        ("movs (M1, 1) T6(0) T9(0)", "20: 'T9' is not declared"),
        ("movs (M1, 1) T0(0) 5:ud", "14: T0, the shared local memory, is not a typed surface"),
        ("movs (M1, 1) T6(0) T0(0)", "20: T0, the shared local memory, is not a typed surface"),
        ("(P1) movs (M1, 1) T6(0) 5:ud", "1: 'movs' takes no predicate"),
        (".input T6 offset=0 bits=3", "20: unknown attribute 'bits'"),
    ],
)
def test_errors(line, message):
    (found,) = (item for item in ptxemu.lint(TABLE + line, dialect="visa") if item.severity == "error")
    assert found.line == TABLE.count("\n") + 1
    assert f"{found.column}: {found.message}".startswith(message)

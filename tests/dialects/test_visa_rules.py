"""Rules of TYPED_ATOMIC, table by table and row by row."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.visa.encoding import decode
from tests.dialects.test_visa_atomic import LANES, atomic, texels, update
from tests.dialects.test_visa_encoding import encoded
from tests.support.visa_harness import device, errors, run

# op: code, src0, src1 (needed, null, or free), the type of src0 and dst.
OPERATIONS = {
    "add": (0x00, "value", "null", "ud"), "sub": (0x01, "value", "null", "ud"), "inc": (0x02, "null", "null", "ud"),
    "dec": (0x03, "null", "null", "ud"), "min": (0x04, "value", "null", "ud"), "max": (0x05, "value", "null", "ud"),
    "xchg": (0x06, "value", "null", "ud"), "cmpxchg": (0x07, "value", "value", "ud"), "and": (0x08, "value", "null", "ud"),
    "or": (0x09, "value", "null", "ud"), "xor": (0x0A, "value", "null", "ud"), "imin": (0x0B, "value", "null", "d"),
    "imax": (0x0C, "value", "null", "d"), "predec": (0x0D, "free", "null", "ud"), "fmax": (0x10, "value", "null", "f"),
    "fmin": (0x11, "value", "null", "f"), "fcmpwr": (0x12, "value", "value", "f"),
}  # fmt: skip
HEAD = ".kernel k\n.decl T6 v_type=T num_elts=1\n" + "\n".join(
    f".decl {name} v_type=G type={kind} num_elts=8" for name, kind in (("UD", "ud"), ("D", "d"), ("F", "f"))
)


def accepted(op: str, places: dict[str, str], strict: bool = False) -> bool:
    """Whether an instruction with these operands is; what is not named is right."""
    _, first, second, kind = OPERATIONS[op]
    right = kind.upper()
    operands = {"u": "UD", "v": "V0", "r": "V0", "lod": "V0", "src0": right, "src1": "UD", "dst": right}
    operands |= {name: "V0" for name, need in (("src0", first), ("src1", second)) if need != "value"} | places
    words = " ".join(word if word == "V0" else f"{word}.0" for word in operands.values())
    return not errors(f"{HEAD}\nTYPED_ATOMIC.{op} (M1, 8) T6 {words}", strict)


def renamed(text: str, **names: str) -> str:
    """Other variables in an instruction."""
    head, _, operands = text.partition(" T6 ")
    words = (word.partition(".") for word in operands.split())
    return f"{head} T6 " + " ".join(names.get(name, name) + dot + byte for name, dot, byte in words)


@pytest.mark.parametrize("op", OPERATIONS)
def test_operands_of_every_operation(op):
    """Src0 and src1 are a value, V0, or (predec) anything; dst may be V0 always."""
    code, first, second, kind = OPERATIONS[op]
    for place, need in (("src0", first), ("src1", second)):
        assert accepted(op, {place: "V0"}) == (need != "value")
        assert accepted(op, {place: kind.upper() if place == "src0" else "UD"}) == (need != "null")
    assert accepted(op, {"dst": "V0"}) and accepted(op, {"dst": "V0"}, strict=True)
    assert not accepted(op, {"u": "V0"})
    assert encoded(renamed(atomic(op), U="V1", A="V2", B="V3", D="V4"))[1] == code


@pytest.mark.parametrize("op", OPERATIONS)
def test_types_of_every_operation(op):
    """D or UD, floats F too, everything else UD; no rule in lenient mode."""
    _, first, second, kind = OPERATIONS[op]
    for place in ("u", "v", "r", "lod", "src0", "src1", "dst"):
        if (place == "src0" and first != "value") or (place == "src1" and second != "value"):
            continue
        right = {"f": {"UD", "F"}, "d": {"D"}, "ud": {"UD"}}[kind] if place in ("src0", "dst") else {"UD"}
        if place == "src1" and kind == "f":
            right = {"UD", "F"}  # the new value of fcmpwr
        for given in ("UD", "D", "F"):
            assert accepted(op, {place: given}), "lenient mode"
            assert accepted(op, {place: given}, strict=True) == (given in right), (place, given)


def test_typed_floats_may_be_refused():
    """Just fmax, fmin and fcmpwr."""
    for op, (_, _, _, kind) in OPERATIONS.items():
        text = HEAD + "\n" + renamed(atomic(op), U="UD", A="UD", B="UD", D="UD")
        if kind == "f":
            with pytest.raises(ptxemu.PtxError, match=f"'.{op}' is not an operation on typed surfaces"):
                ptxemu.loads(text, dialect="visa", options={"strict_typed_float": "reject"})
        else:
            ptxemu.loads(text, dialect="visa", options={"strict_typed_float": "reject"})


def test_predec_ignores_its_source():
    """Predec accepts V0 or any operand."""
    for src0 in ("V0", "A.0"):
        surface = texels([0, 5] * 4)
        got = run(f"TYPED_ATOMIC.PREDEC (M1, 8) T6 U.0 V0 V0 V0 {src0} V0 D.0", {"U": LANES, "A": 3, "D": 9}, surface, ["D"])
        assert surface.copy_to_host().tolist() == got["D"][0].tolist() == [0xFFFFFFFF, 4] * 4


def test_half_float_rules():
    """The NaN rule, its option, zeros and subnormals in halves."""
    olds = [0x7E01, 0x3C00, 0x7E01, 0x0000, 0x8000, 0x0001, 0xFC00, 0x8001]
    values = [0x3C00, 0x7E01, 0xFE01, 0x8000, 0x0000, 0x0002, 0x3C00, 0x8002]
    assert update("fmin", olds, values, half=True)[0] == [0x3C00, 0x3C00, 0x7E00, 0x8000, 0x8000, 0x0001, 0xFC00, 0x8002]
    assert update("fmax", olds, values, half=True)[0] == [0x3C00, 0x3C00, 0x7E00, 0x0000, 0x0000, 0x0002, 0x3C00, 0x8001]
    kept = update("fmin", olds, values, half=True, options={"fminmax_nan": "keep_old"})[0]
    assert kept[1] == 0x3C00 and kept[3:] == [0x8000, 0x8000, 0x0001, 0xFC00, 0x8002]
    olds = [0x8000, 0x0000, 0x7E00, 0x3C00, 0x3C00, 0x0001, 0x0000, 0x7C00]
    comparands = [0x0000, 0x8000, 0x7E00, 0x3C00, 0x3C01, 0x0001, 0x0001, 0x7C00]
    assert update("fcmpwr", olds, comparands, 0x4000, half=True)[0] == [0x4000, 0x4000, 0x7E00, 0x4000, 0x3C00, 0x4000, 0, 0x4000]


def test_mask_table():
    """The sixteen codes, both ways, and the channels that they choose."""
    predicate = 0x9ABCDE1F
    surface = texels([0] * 64)
    lines, want = [], np.zeros(64, np.uint32)
    for code in range(16):
        number, no_mask = code % 8 + 1, code > 7
        text = f"TYPED_ATOMIC.INC (M{number}{'_NM' if no_mask else ''}, 4) T6 V1.{16 * code} V0 V0 V0 V0 V0 V0"
        assert encoded(text)[2] == code << 4 | 2 and decode(encoded(text)) == text
        lines.append(f"(P1) {text}")
        want[4 * code : 4 * code + 4] = [predicate >> 4 * (number - 1) + n & 1 for n in range(4)]
    run(lines, {"V1": np.arange(64), "P1": predicate}, surface, width=64)
    assert surface.copy_to_host().tolist() == want.tolist()


def test_sizes_and_offsets():
    """1, 2, 4 and 8 in lenient mode, 8 in strict mode, at offsets that are multiples of 8 there."""
    for size in (1, 2, 4, 8, 16, 32):
        for number in range(1, 9):
            for suffix in ("", "_NM"):
                offset = 4 * (number - 1)
                text = f"{HEAD}\nTYPED_ATOMIC.INC (M{number}{suffix}, {size}) T6 UD.0 V0 V0 V0 V0 V0 V0"
                assert (not errors(text)) == (size <= 8 and offset + size <= 32), (size, number)
                assert (not errors(text, strict=True)) == (size == 8 and number in (1, 3, 5, 7)), (size, number)


@pytest.mark.parametrize("strict", [False, True])
def test_formats_in_every_mode(strict):
    """32-bit operations need one component of four bytes, those of 16 bits one of two."""
    formats = {"R32_UINT": 4, "R32_SINT": 4, "R32_FLOAT": 4, "R16_UINT": 2, "R16_SINT": 2, "R16_FLOAT": 2, "R16G16_UINT": 0,
               "R8_UINT": 0, "R8G8B8A8_UINT": 0, "R32G32_UINT": 0, "R8G8_UINT": 0}  # fmt: skip
    for format, size in formats.items():
        for op in ("add", "fmin"):
            for half in (False, True):
                surface = device().surface((8,), format=format, geometry="1d")
                kind_fits = not strict or (op == "fmin") == ("FLOAT" in format)
                if size == (2 if half else 4) and kind_fits:
                    run(atomic(op, half=half, dst="V0"), {"U": LANES, "A": 1}, surface, strict=strict, types={"A": "ud"})
                    continue
                with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
                    run(atomic(op, half=half, dst="V0"), {"U": LANES, "A": 1}, surface, strict=strict)


def test_spellings():
    """Any case of opcode, operation and mask; both names of the signed minimum and maximum; four nulls; names."""
    texts = [
        "TYPED_ATOMIC.IMIN (M1, 8) T6 U.0 V0 V0 V0 A.0 V0 D.0", "typed_atomic.imin (m1, 8) T6 U.0 V0.0 V0 V0 A.0 V0 D.0",
        "Typed_Atomic.minsint (8) image U.0 %null.0 V0 V0 A.0 %null.0 D.0",
        "TYPED_ATOMIC.MINSINT (M1,8) T6 U.0 %null V0.0 V0 A.0 V0 D.0",
        "TYPED_ATOMIC.iMin (NoMask, 8) image U.0 V0 V0 V0 A.0 V0 D.0",
    ]  # fmt: skip
    surface = device().surface(np.full(8, 9, np.int32), format="R32_SINT", geometry="1d")
    for number, text in enumerate(texts):
        got = run(text, {"U": LANES, "A": -number & 0xFFFFFFFF, "D": 1}, surface, ["D"])["D"][0]
        assert surface.copy_to_host().tolist() == [-number] * 8
        assert got.astype(np.int32).tolist() == [9 if number == 0 else 1 - number] * 8

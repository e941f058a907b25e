"""vISA programs: text, diagnostics, masks, and the instructions around TYPED_ATOMIC."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxemu
from ptxemu.dialects import operations
from ptxemu.dialects.visa.table import ATOMIC, TABLE, build
from ptxemu.driver.compile import Options, emit, front
from ptxemu.isa.table import Row
from tests.support.visa_harness import errors, run

HEAD = """.kernel "k"
.decl V40 v_type=G type=ud num_elts=8
.decl V41 v_type=G type=ud num_elts=16 v_name=wide
.decl V42 v_type=G type=d num_elts=8
.decl V43 v_type=G type=f num_elts=8
.decl V44 v_type=G type=uw num_elts=16
.decl P3 v_type=P num_elts=8
.decl T6 v_type=T num_elts=1
"""
FIRST = HEAD.count("\n") + 1


def error_of(line: str, strict: bool = False) -> str:
    """The error of one line of a kernel, without its line number."""
    (message,) = errors(f"{HEAD}{line}\nret (M1, 1)", strict)
    assert message.startswith(f"{FIRST}:"), message
    return message.removeprefix(f"{FIRST}:")


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    "line",
    [
        "TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V41.0 V0 V0 V42.0 V0 V44.0",
        "(P3) typed_atomic.cmpxchg.16 (8) T6 V40.0 V41.0 V0.0 %null.0 V40.0 V40.0 %null // a comment",
        "(!P3.any) Typed_Atomic.MinSInt (NoMask, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V42.0",
        "typed_atomic.maxsint.16 (m1_nm, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V42.0",
        "TYPED_ATOMIC.INC (M1, 8) T6 wide.32 V0 V0 V0 V0 V0 V0",
        "TYPED_ATOMIC.PREDEC (M1, 8) T6 wide.30 V0 V0 V0 V43.0 V0 V0 /* src0 is ignored */",
        "TYPED_ATOMIC.ADD (M2, 4) T6 V40.0 V41.0 V0 V0 V42.0 V0 V44.0",
        "_L1_2:",
        "add (M1, 8) V41(1,0)<1> (-)V40(0,0)<8;8,1> 0x76543210:uv",
        "mov (M1_NM, 4) wide(0,0)<4> V40(0,0)<0;1,0>",
        ".decl V9 v_type=G type=uw num_elts=16 align=GRF alias=<V40, 0>",
    ],
)
def test_accepted(line):
    """Accepted."""
    assert errors(HEAD + line) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("TYPED_ATOMC.ADD (M1, 8) T6", "1: unknown instruction 'TYPED_ATOMC'; did you mean 'typed_atomic'?"),
        ("TYPED_ATOMIC.FADD (M1, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "13: unknown modifier '.fadd' for 'typed_atomic'"),
        ("TYPED_ATOMIC (M1, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "1: 'typed_atomic' needs an operation: .add"),
        ("TYPED_ATOMIC.ADD.64 (M1, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "17: unknown modifier '.64' for 'typed_atomic'"),
        ("TYPED_ATOMIC.ADD.SUB (M1, 8) T6 V40.0", "17: '.sub' and '.add' both give the operation of 'typed_atomic'"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V43.0 V0", "1: 'TYPED_ATOMIC.ADD' takes 8 operands, not 7"),
        ("TYPED_ATOMIC.ADD T6 V40.0 V0 V0 V0 V43.0 V0 V0", "17: an execution size is missing, such as (M1, 8)"),
        ("TYPED_ATOMIC.ADD (M1, 16) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "23: the execution size of TYPED_ATOMIC is 8, not 16"),
        ("TYPED_ATOMIC.ADD (M1, 7) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "23: the execution size is 7, not one of 1, 2, 4, 8, 16"),
        ("TYPED_ATOMIC.ADD (M9, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "19: 'M9' is not a mask; there are M1 to M8"),
        ("TYPED_ATOMIC.ADD (M8, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "19: channels 28 to 35 exceed the 32 of the kernel"),
        ("(P3) TYPED_ATOMIC.INC (M3, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "2: channels 8 to 15 exceed the 8 of 'P3'"),
        ("(P3.none) TYPED_ATOMIC.INC (M1, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "4: '.none' is neither .any nor .all"),
        ("TYPED_ATOMIC.INC (M1, 8) T6 V0.4 V0 V0 V0 V0 V0 V0", "29: 'V0' is the null variable, not a general variable"),
        ("TYPED_ATOMIC.INC (M1, 8) V0 V40.0 V0 V0 V0 V0 V0 V0", "26: 'V0' is the null variable, not a surface"),
        ("TYPED_ATOMIC.INC (M1, 8) T6 %nul.0 V0 V0 V0 V0 V0 V0", "29: unknown predefined variable '%nul'; did you mean '%null'?"),
        ("(P4) TYPED_ATOMIC.INC (M1, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "2: 'P4' is not declared; did you mean 'P3'?"),
        ("(V40) TYPED_ATOMIC.INC (M1, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "2: 'V40' is a general variable, not a predicate"),
        ("TYPED_ATOMIC.INC (M1, 8) T0 V40.0 V0 V0 V0 V0 V0 V0", "26: T0, the shared local memory, is not a typed surface"),
        ("TYPED_ATOMIC.INC (M1, 8) V40 V40.0 V0 V0 V0 V0 V0 V0", "26: 'V40' is a general variable, not a surface"),
        ("TYPED_ATOMIC.INC (M1, 8) T6 V0 V0 V0 V0 V0 V0 V0", "29: the null variable may not stand here"),
        ("TYPED_ATOMIC.INC (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0", "44: this operand must be the null variable V0"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V42.0 V0", "50: this operand must be the null variable V0"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "44: the null variable may not stand here"),
        ("TYPED_ATOMIC.FCMPWR (M1, 8) T6 V40.0 V0 V0 V0 V43.0 V0 V0", "53: the null variable may not stand here"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42 V0 V0", "44: expected a raw operand, such as V40.0, or the null"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.4 V0 V0 V0 V42.0 V0 V0", "29: 8 dwords from byte 4 on do not fit 'V40', which has 32"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V49.0 V0 V0 V0 V42.0 V0 V0", "29: 'V49' is not declared; did you mean 'V44'?"),
        ("TYPED_ATOMIC.ADD (M1, 8 T6 V40.0 V0", "25: expected ')', found 'T6'"),
        ("(P3 TYPED_ATOMIC.ADD (M1, 8) T6", "5: expected ')', found 'TYPED_ATOMIC.ADD'"),
        ("add (M1, 8) V40(0,0)<1> V41(1,1)<8;8,1> 0x1:ud", "25: the region leaves 'wide', which has 16 elements of type ud"),
        ("add (M1, 8) V40(0,0)<1> V40.0 0x1:ud", "25: expected an operand with a region, such as V40(0,0)<1;1,0>"),
        ("add (M1, 8) V40(0,0)<1;1,0> V40(0,0)<1;1,0> 0x1:ud", "16: a target has one stride, <h>"),
        ("add (M1, 8) V40(0,0)<1> V40(0,0)<1> 0x1:ud", "28: a source has three strides, <v;w,h>"),
        ("add (M1, 8) V40(0,0)<1> V40(0,0)<3;1,0> 0x1:ud", "28: a stride is 3, not one of 0, 1, 2, 4, 8, 16, 32"),
        ("add (M1, 8) V43(0,0)<1> V43(0,0)<1;1,0> 0x1:ud", "13: 'add' does not take type f here"),
        ("add (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 1", "41: an immediate has a type: one of ub, b, uw"),
        ("add (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 0x100000000:ud", "41: the number does not fit type ud"),
        ("add (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 1x:d", "41: invalid number '1x'"),
        ("min (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 1:d", "25: one source is signed, the other of type ud"),
        ("mov (M1, 8) V40(0,0)<1> 1.0:df", "25: 'mov' does not convert type df to ud"),
        ("sel (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 1:ud", "1: 'sel' needs a predicate, (P1)"),
        ("movs (M1, 1) T6(0) 5:d", "20: an index of the binding table has type ud, not d"),
        ("movs (M1, 1) T252(0) 5:d", "22: a handle has type uq or ud, not d"),
        ("jmp (M1, 1) nowhere", "13: unknown label 'nowhere'"),
        (
            "mov (M1, 8) V40(0,0)<1> %local_id(0,0)<0;1,0>",
            "25: unknown predefined variable '%local_id'; did you mean '%local_id_",
        ),
        ("mov (M1, 8) V40(0,0)<1> ~", "25: unexpected character '~'"),
        ("mov (M1, 8) V40(0,0)<1> V40 /* never", "29: this comment never ends"),
        (".shader x", "1: unknown directive '.shader'"),
        (".decl V40 v_type=G type=ud num_elts=8", "7: 'V40' is declared twice"),
        (".decl V0 v_type=G type=ud num_elts=8", "7: 'V0' is the null variable"),
        (".decl V50 v_type=G type=vec num_elts=8", "20: type is vec, not one of ub, b"),
        (".decl V50 v_type=G type=ud", "7: 'V50' needs num_elts="),
        (".decl V50 v_type=G type=ud num_elts=0", "28: num_elts is from 1 to 1024"),
        (".decl V50 v_type=A num_elts=1", "11: v_type is A, not one of G, P, T"),
        (".decl V50 v_type=G typ=ud num_elts=1", "20: unknown attribute 'typ'; did you mean 'type'?"),
        (".decl V50 v_type=G type=ud num_elts=8 alias=<V40, 4>", "46: 32 bytes from byte 4 on exceed the 32 of 'V40'"),
        (".input V40 offset=32 size=32", "8: an argument is a scalar of up to 8 bytes; a thread's values come by .in"),
        (".em 0x100000000", "5: an execution mask has 32 bits"),
        (".kernel_attr SimdSize=7", "14: the SIMD width is one of 8, 16, 32"),
        (".in V40", "1: expected .in V40 name"),
        (".kernel k", "9: kernel 'k' is defined twice"),
    ],
)
def test_errors(line, message):
    """Errors."""
    assert error_of(line).startswith(message), error_of(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("TYPED_ATOMIC.INC (M2, 8) T6 V40.0 V0 V0 V0 V0 V0 V0", "19: 'M2' starts at channel 4, not a multiple of 8"),
        ("TYPED_ATOMIC.INC (M1, 4) T6 V40.0 V0 V0 V0 V0 V0 V0", "23: the execution size of TYPED_ATOMIC is 8, not 4"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V42.0 V0 V0 V0 V40.0 V0 V0", "29: 'V42' has type d, not ud"),
        ("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0", "44: 'V42' has type d, not ud"),
        ("TYPED_ATOMIC.IMIN (M1, 8) T6 V40.0 V0 V0 V0 V40.0 V0 V0", "45: 'V40' has type ud, not d"),
        ("TYPED_ATOMIC.IMIN (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V40.0", "54: 'V40' has type ud, not d"),
        ("TYPED_ATOMIC.FMIN (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0", "45: 'V42' has type d, not ud or f"),
    ],
)
def test_strict_errors(line, message):
    """Strict errors."""
    assert errors(HEAD + line) == []
    assert error_of(line, strict=True).startswith(message)


def test_offsets_stay_within_the_simd_width_in_strict_mode():
    """Offsets stay within the simd width in strict mode."""
    text = HEAD + ".kernel_attr SimdSize=16\nTYPED_ATOMIC.INC (M5, 8) T6 V40.0 V0 V0 V0 V0 V0 V0"
    assert errors(text) == []
    assert errors(text, strict=True) == [f"{FIRST + 1}:19: channels 16 to 23 exceed the 16 of the kernel"]


def test_every_code_has_a_word():
    """The 17 codes of the operation table and no others; fadd and fsub, which only the finalizer has, are errors."""
    words = {row.qualifiers[0].values[0] for row in TABLE[ATOMIC]}
    codes = {entry.visa: entry.visa_code for entry in operations.OPERATIONS if entry.visa}
    assert codes == {
        "add": 0, "sub": 1, "inc": 2, "dec": 3, "min": 4, "max": 5, "xchg": 6, "cmpxchg": 7, "and": 8, "or": 9, "xor": 10,
        "imin": 11, "imax": 12, "predec": 13, "fmax": 16, "fmin": 17, "fcmpwr": 18,
    }  # fmt: skip
    assert words == set(codes)


def test_errors_of_the_file():
    assert errors("") == ["1:1: the file has no .kernel"]
    assert errors("ret (M1, 1)") == ["1:1: this must follow a .kernel directive"]
    assert errors(".kernel k\nx:\nx:") == ["3:1: label 'x' is defined twice"]
    assert len(errors(".kernel k\n" + "FOO (M1, 1)\n" * 100)) == 20


def test_a_new_operation_is_one_row(monkeypatch):
    known = list(operations.OPERATIONS)
    monkeypatch.setattr(operations, "OPERATIONS", known)
    operations.operation("ADD", visa="near", visa_code=0x1F)
    table: dict[str, list[Row]] = {}
    build(table)
    monkeypatch.setitem(TABLE, ATOMIC, table[ATOMIC])
    assert errors(HEAD + "TYPED_ATOMIC.NEAR (M1, 8) T6 V40.0 V0 V0 V0 V40.0 V0 V0") == []


@settings(max_examples=150)
@given(st.data())
def test_wrong_text_is_diagnosed(data):
    """No text makes anything but diagnostics."""
    text = "(!P3.any) TYPED_ATOMIC.CMPXCHG.16 (M1_NM, 8) T6 V40.0 V41.4 V0 V0 V42.0 V43.0 V44.0\nL:\njmp (M1, 1) L"
    text += "\nadd (M1, 8) V41(1,0)<1> (-)V40(0,0)<8;8,1> 0x76543210:uv\ncmp.lt (M1, 8) P3 V43(0,0)<1;1,0> 1.5e-3:f"
    lines = (HEAD + text).split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        at = data.draw(st.integers(0, len(line)))
        end = data.draw(st.integers(at, min(len(line), at + 4)))
        lines[number] = line[:at] + data.draw(st.text('VPTM0139(){}<>,;:!+-=.%_~" \t\n/*#é\0', max_size=3)) + line[end:]
    for item in ptxemu.lint("\n".join(lines), dialect="visa"):
        assert item.severity in ("error", "warning") and item.line >= 1


# ---------------------------------------------------------------- instructions around TYPED_ATOMIC

VALUES = [0, 1, 2, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF]
A, B = (np.array(column).reshape(-1, 8) for column in zip(*[(a, b) for a in VALUES for b in VALUES], strict=True))


def signed(value):
    return value.astype(np.int64) - ((value >> 31) << 32)


ARITHMETIC = {
    "mov {d} {a}": lambda a, b: a,
    "add {d} {a} {b}": lambda a, b: a + b,
    "add {d} {a} (-){b}": lambda a, b: a - b,
    "mul {d} {a} {b}": lambda a, b: (a.astype(object) * b).astype(object),
    "mad {d} {a} {b} {a}": lambda a, b: a.astype(object) * b + a,
    "and {d} {a} {b}": lambda a, b: a & b,
    "or {d} {a} (~){b}": lambda a, b: a | ~b,
    "xor {d} {a} 0xff:ud": lambda a, b: a ^ 0xFF,
    "not {d} {a}": lambda a, b: ~a,
    "shl {d} {a} {b}": lambda a, b: a << (b & 31),
    "shr {d} {a} 0x23:ud": lambda a, b: a >> 3,
    "asr {d} {a} {b}": lambda a, b: signed(a) >> (b & 31),
    "min {d} {a} {b}": np.minimum,
    "max {d} {a} {b}": np.maximum,
    "min {d} {sa} {sb}": lambda a, b: np.minimum(signed(a), signed(b)),
    "max {d} {sa} (abs){sb}": lambda a, b: np.maximum(signed(a), signed(np.abs(signed(b)) & 0xFFFFFFFF)),
    "add {d} {a} (abs){b}": lambda a, b: a + b,
    "add {d} {a} (-abs){b}": lambda a, b: a - b,
    "cmp.lt {d} {a} {b}": lambda a, b: -(a < b).astype(np.int64),
    "cmp.ge {d} {sa} {sb}": lambda a, b: -(signed(a) >= signed(b)).astype(np.int64),
}


@pytest.mark.parametrize("text", ARITHMETIC)
def test_arithmetic(text):
    head = ".decl SA v_type=G type=d num_elts=8 alias=<A, 0>\n.decl SB v_type=G type=d num_elts=8 alias=<B, 0>"
    opcode, _, rest = text.partition(" ")
    names = {"d": "D(0,0)<1>", "a": "A(0,0)<8;8,1>", "b": "B(0,0)<1;1,0>", "sa": "SA(0,0)<8;8,1>", "sb": "SB(0,0)<8;8,1>"}
    got = run_aliased(f"{opcode} (M1, 8) {rest.format(**names)}", head)
    assert (got.astype(object) == (ARITHMETIC[text](A, B) & 0xFFFFFFFF)).all()


def run_aliased(line: str, head: str) -> np.ndarray:
    return run([*head.split("\n"), line], {"A": A, "B": B, "D": 9}, outputs=["D"])["D"]


def test_floats():
    a, b = np.float32([1.5, -2, 0.1, 3e38]), np.float32([2, 0.5, 0.2, 3e38])
    values = {"A": np.tile(a.view(np.uint32), 2), "B": np.tile(b.view(np.uint32), 2), "D": 0}
    types = dict.fromkeys("ABD", "f")
    with np.errstate(over="ignore"):
        for text, want in [("add", a + b), ("mul", a * b), ("min", np.minimum(a, b)), ("max", np.maximum(a, b))]:
            line = f"{text} (M1, 8) D(0,0)<1> A(0,0)<1;1,0> B(0,0)<1;1,0>"
            assert run(line, values, outputs=["D"], types=types)["D"].view(np.float32)[0, :4].tolist() == want.tolist()
    line = "mad (M1, 8) D(0,0)<1> (-)A(0,0)<1;1,0> 2.5:f -1e-1:f"
    want = [float(np.float32(-x * 2.5 - float(np.float32(0.1)))) for x in map(float, a[:3])]
    assert run(line, values, outputs=["D"], types=types)["D"].view(np.float32)[0, :3].tolist() == want


def test_conversions():
    head = [f".decl {name} v_type=G type={kind} num_elts=8 alias=<D, 0>" for name, kind in (("DF", "f"), ("DD", "d"))]
    for source, values, target, want in [
        ("f", np.float32([1.9, -1.9, 3e9, -3e9, np.nan, 5e9, 0.5, 7]).view(np.uint32), "DD",
         np.int32([1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, 0, 7])),
        ("f", np.float32([1.9, -1.9, 3e9, -3e9, np.nan, 5e9, 0.5, 7]).view(np.uint32), "D",
         np.uint32([1, 0, 3000000000, 0, 0, 2**32 - 1, 0, 7])),
        ("d", np.int32([1, -1, 2**31 - 1, -(2**31), 0, 5, 6, 7]), "DF",
         np.float32([1, -1, 2**31 - 1, -(2**31), 0, 5, 6, 7])),
    ]:  # fmt: skip
        line = f"mov (M1, 8) {target}(0,0)<1> A(0,0)<8;8,1>"
        got = run([*head, line], {"A": values.view(np.uint32), "D": 0}, outputs=["D"], types={"A": source})["D"][0]
        assert got.tolist() == want.view(np.uint32).tolist()


NARROW = [("ub", 1, False), ("b", 1, True), ("uw", 2, False), ("w", 2, True)]


@pytest.mark.parametrize(("kind", "size", "is_signed"), NARROW)
def test_parts_of_registers(kind, size, is_signed):
    """Narrow elements through an alias, at every byte, read and written."""
    data = np.arange(0x70, 0x90, dtype=np.uint8)
    for start in (0, 1, 2, 3):
        head = [f".decl N v_type=G type={kind} num_elts=8 alias=<A, {start}>"]
        head += [f".decl M v_type=G type={kind} num_elts=8 alias=<D, {start}>"]
        lines = [*head, "mov (M1, 8) D(0,0)<1> N(0,0)<8;8,1>"]
        elements = np.frombuffer(data.tobytes()[start : start + 8 * size], f"{'i' if is_signed else 'u'}{size}")
        got = run(lines, {"A": data.view(np.uint32), "D": 0}, outputs=["D"])["D"][0]
        assert got.tolist() == elements.astype(np.int64).astype(np.uint32).tolist()
        lines = [*head, "mov (M1, 8) M(0,0)<1> A(0,0)<8;8,1>"]
        wanted = np.full(32, 0xEE, np.uint8)
        wanted[start : start + 8 * size] = data.view(np.uint32).astype(f"u{size}").view(np.uint8)
        got = run(lines, {"A": data.view(np.uint32), "D": 0xEEEEEEEE}, outputs=["D"])["D"]
        assert got.view(np.uint8)[0].tolist() == wanted.tolist()


def test_raw_operands_need_no_alignment():
    """Dwords from any byte offset (a misaligned one is tolerated)."""
    data = np.arange(32, dtype=np.uint8)
    surface_less = [".decl W v_type=G type=ud num_elts=7 alias=<A, 3>", "mov (M1, 4) D(0,0)<1> W(0,0)<1;1,0>"]
    got = run(surface_less, {"A": data.view(np.uint32), "D": 0}, outputs=["D"])["D"][0, :4]
    assert got.tolist() == np.frombuffer(data.tobytes()[3:19], np.uint32).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A(0,0)<0;1,0>", [0] * 8), ("A(0,2)<0;1,0>", [2] * 8), ("A(0,0)<8;8,1>", list(range(8))),
        ("A(0,0)<1;1,0>", list(range(8))), ("A(0,0)<1;2,0>", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("A(0,0)<2;4,1>", [0, 1, 2, 3, 2, 3, 4, 5]), ("A(0,0)<4;4,1>", list(range(8))), ("0x76543210:uv", list(range(8))),
        ("0xfedcba98:v", [0xFFFFFFFF + n for n in range(-7, 1)]), ("-2:d", [0xFFFFFFFE] * 8), ("-1:w", [0xFFFFFFFF] * 8),
        ("0xffff:uw", [0xFFFF] * 8),
    ],
)  # fmt: skip
def test_regions_and_immediates(text, expected):
    got = run(f"mov (M1, 8) D(0,0)<1> {text}", {"A": np.arange(8), "D": 99}, outputs=["D"])["D"][0]
    assert got.tolist() == expected


def test_overlapping_regions_are_read_first():
    got = run("mov (M1, 4) D(0,1)<1> D(0,0)<4;4,1>", {"D": np.arange(8)}, outputs=["D"])["D"][0]
    assert got.tolist() == [0, 0, 1, 2, 3, 5, 6, 7]


def test_predicates():
    lines = [
        "cmp.gt (M1, 8) P1 A(0,0)<8;8,1> 0x3:ud",
        "(P1) mov (M1, 8) D(0,0)<1> 0x7:ud",
        "(!P1) sel (M1, 8) E(0,0)<1> A(0,0)<8;8,1> 0x63:ud",
        "setp (M1, 8) P2 0x5a:uw",
        "(P1) cmp.eq (M1, 8) P3 A(0,0)<8;8,1> A(0,0)<8;8,1>",
    ]
    values = {"A": np.arange(8), "D": 1, "E": 0, "P1": 0, "P2": 0, "P3": 1}
    got = run(lines, values, outputs=["D", "E", "P1", "P2", "P3"])
    assert got["D"][0].tolist() == [1] * 4 + [7] * 4
    assert got["E"][0].tolist() == [0, 1, 2, 3] + [99] * 4
    assert [int(got[name][0, 0]) for name in ("P1", "P2", "P3")] == [0xF0, 0x5A, 0xF1]


def test_scalar_jumps():
    """A loop of each thread: the sum of 1 .. A."""
    lines = [
        "again:", "cmp.eq (M1_NM, 1) P1 A(0,0)<0;1,0> 0x0:ud", "(P1) jmp (M1, 1) done",
        "add (M1_NM, 1) D(0,0)<1> D(0,0)<0;1,0> A(0,0)<0;1,0>", "add (M1_NM, 1) A(0,0)<1> A(0,0)<0;1,0> 0xffffffff:ud",
        "jmp (M1, 1) again", "done:", "cmp.gt (M1_NM, 1) P1 D(0,0)<0;1,0> 0x64:ud", "(P1) ret (M1, 1)",
        "mov (M1_NM, 1) D(0,1)<1> 0x1:ud",
    ]  # fmt: skip
    got = run(lines, {"A": [[n] * 8 for n in range(40)], "D": 0, "P1": 0}, outputs=["D"])["D"]
    assert got[:, 0].tolist() == [n * (n + 1) // 2 for n in range(40)]
    assert got[:, 1].tolist() == [int(n * (n + 1) // 2 <= 100) for n in range(40)]


def test_arguments_and_predefined_variables():
    text = """.version 3.6
    .kernel "k"
    .decl V32 v_type=G type=ud num_elts=1 v_name=n
    .decl V33 v_type=G type=uq num_elts=1
    .decl V34 v_type=G type=w num_elts=1
    .decl V40 v_type=G type=ud num_elts=8
    .input V32 offset=64 size=4
    .input V33 offset=72 size=8
    .input V34
    .out V40 out
    .decl V35 v_type=G type=ud num_elts=2 alias=<V33, 0>
    mov (M1_NM, 1) V40(0,0)<1> V32(0,0)<0;1,0>
    mov (M1_NM, 2) V40(0,1)<1> V35(0,0)<1;1,0>
    mov (M1_NM, 1) V40(0,3)<1> V34(0,0)<0;1,0>
    mov (M1_NM, 1) V40(0,4)<1> %local_id_x(0,0)<0;1,0>
    mov (M1_NM, 1) V40(0,5)<1> %group_id_x(0,0)<0;1,0>
    mov (M1_NM, 1) V40(0,6)<1> %local_size_x(0,0)<0;1,0>
    mov (M1_NM, 1) V40(0,7)<1> %group_count_x(0,0)<0;1,0>
    """
    out = np.zeros((6, 8), np.uint32)
    ptxemu.loads(text, dialect="visa")["k"][2, 3](7, 0x1122334455667788, -2, out)
    for thread in range(6):
        assert out[thread].tolist() == [7, 0x55667788, 0x11223344, 0xFFFFFFFE, thread % 3, thread // 3, 3, 2]


@pytest.mark.parametrize(
    ("type", "argument", "low", "high"),
    [
        ("ub", 200, 200, 0), ("b", -3, 0xFD, 0), ("uw", 65535, 0xFFFF, 0), ("w", -2, 0xFFFE, 0), ("hf", 1.5, 0x3E00, 0),
        ("ud", 4294967295, 0xFFFFFFFF, 0), ("d", -5, 0xFFFFFFFB, 0), ("f", -1.5, 0xBFC00000, 0),
        ("uq", 0x123456789ABCDEF0, 0x9ABCDEF0, 0x12345678), ("q", -2, 0xFFFFFFFE, 0xFFFFFFFF), ("df", 1.0, 0, 0x3FF00000),
    ],
)  # fmt: skip
def test_arguments_of_every_type(type, argument, low, high):
    """``.input``: the bits of an argument are those of its variable."""
    size = {"b": 1, "w": 2, "hf": 2, "q": 8, "df": 8}.get(type.removeprefix("u"), 4)
    shown = {1: "ub", 2: "uw"}.get(size, "ud")
    count = max(1, size // 4)
    text = f""".kernel "k"
    .decl V33 v_type=G type={type} num_elts=1
    .decl V34 v_type=G type={shown} num_elts={count} alias=<V33, 0>
    .decl V40 v_type=G type=ud num_elts=2
    .input V33 offset=64 size={size}
    .out V40 out
    mov (M1_NM, {count}) V40(0,0)<1> V34(0,0)<1;1,0>
    """
    out = np.zeros((1, 2), np.uint32)
    ptxemu.loads(text, dialect="visa")["k"][1, 1](argument, out)
    assert out[0].tolist() == [low, high]


def test_numbers_of_many_digits():
    """They are no crash, though Python converts no more than 4300."""
    assert error_of(f"mov (M1, 8) V40(0,0)<1> {'9' * 5000}:ud") == f"25: invalid number '{'9' * 40}'"


def test_wide_immediates_are_cut():
    """``mov`` between integers of 64 and of 32 bits, and back."""
    lines = [
        ".decl Q v_type=G type=uq num_elts=1", ".decl S v_type=G type=ud num_elts=2 alias=<Q, 0>",
        "mov (M1, 1) D(0,0)<1> 0x1122334455667788:uq", "mov (M1, 1) D(0,1)<1> -2:q", "mov (M1, 1) Q(0,0)<1> -3:w",
        "mov (M1, 2) D(0,2)<1> S(0,0)<1;1,0>", "mov (M1, 1) Q(0,0)<1> 0x8000000000000001:q",
        "mov (M1, 2) D(0,4)<1> S(0,0)<1;1,0>",
    ]  # fmt: skip
    got = run(lines, {"D": 0}, outputs=["D"])["D"][0]
    assert got.tolist() == [0x55667788, 0xFFFFFFFE, 0xFFFFFFFD, 0xFFFFFFFF, 1, 0x80000000, 0, 0]


# ---------------------------------------------------------------- machines

PROGRAM = f"""{HEAD}.in V40 x
.out V41 y
cmp.lt (M1, 8) P3 V40(0,0)<1;1,0> 0x5:ud
(P3) TYPED_ATOMIC.CMPXCHG.16 (M1, 8) T6 V40.0 V41.2 V0 V40.0 V42.0 V43.0 V41.0
(!P3.any) TYPED_ATOMIC.FMIN (M3, 8) T6 V40.0 V41.0 V41.0 V0 V43.0 V0 V0
add (M1, 8) V44(0,1)<2> V44(0,0)<8;8,1> -1:w
"""


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("variant", ["row", "any"])
def test_compiles_for_every_machine(cpu, variant):
    program = PROGRAM.replace("v_type=P num_elts=8", "v_type=P num_elts=16")
    module = front(program, "t.visa", dialect="visa")
    assert emit(module, "k", Options(cpu=cpu, opt=1, variant=variant), "obj")

"""Two accesses of shared memory that fill each other's gaps: values, masks, what lies between, and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel
from tests.support.processors import without_avx512

PARAMETERS = ".param .u64 out, .param .u64 in"


def places(distance: int) -> np.ndarray:
    """The lower key of each lane's comparison."""
    lane = np.arange(32)
    return 2 * lane - lane % distance


def swapping(distance: int, kind: str, bytes: int, between: str = "") -> str:
    """Each lane sorts two of 64 keys, which lie ``distance`` apart in ``bytes`` bytes of shared memory."""
    size = int(kind[1:]) // 8
    a, b, compared = ("%rd4", "%rd5", "u64") if kind == "u64" else ("%r4", "%r5", "u32")
    own = f"mul.wide.u32 %rd3, %r1, {size}; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; mad.lo.u32 %r2, %r1, {size}, %r9;"
    fill = f"""ld.global.{kind} {a}, [%rd2]; st.shared.{kind} [%r2], {a};
    ld.global.{kind} {a}, [%rd2+{32 * size}]; st.shared.{kind} [%r2+{32 * size}], {a}; bar.sync 0;"""
    empty = f"""bar.sync 0; ld.shared.{kind} {a}, [%r2]; st.global.{kind} [%rd1], {a};
    ld.shared.{kind} {a}, [%r2+{32 * size}]; st.global.{kind} [%rd1+{32 * size}], {a};"""
    body = f"""mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r9, keys; {own} {fill}
    and.b32 %r7, %r1, {distance - 1}; shl.b32 %r8, %r1, 1; sub.u32 %r8, %r8, %r7; mad.lo.u32 %r3, %r8, {size}, %r9;
    ld.shared.{kind} {b}, [%r3+{distance * size}]; {between} ld.shared.{kind} {a}, [%r3];
    setp.le.{compared} %p1, {a}, {b}; @%p1 bra SORTED;
    st.shared.{kind} [%r3+{distance * size}], {a}; st.shared.{kind} [%r3], {b};
    SORTED: {empty}"""
    return kernel(body, PARAMETERS, f".shared .align 16 .b8 keys[{bytes}];\n")


def launch(program: str, keys: np.ndarray) -> np.ndarray:
    out = np.zeros_like(keys)
    ptxemu.loads(program, filename="test.ptx")["k"][1, 32](out, keys)
    return out


def keys_of(kind: str) -> np.ndarray:
    return np.random.default_rng(1).permutation(64).astype(f"u{int(kind[1:]) // 8}")


def ordered(keys: np.ndarray, distance: int) -> np.ndarray:
    low, found = places(distance), keys.copy()
    pairs = np.stack([keys[low], keys[low + distance]])
    found[low], found[low + distance] = pairs.min(0), pairs.max(0)
    return found


@pytest.mark.parametrize(
    ("distance", "kind"), [(1, "u32"), (2, "u32"), (4, "u32"), (8, "u32"), (2, "u8"), (4, "u16"), (2, "u64")]
)
def test_keys_change_places(distance: int, kind: str) -> None:
    keys = keys_of(kind)
    found = launch(swapping(distance, kind, 64 * keys.itemsize), keys)
    np.testing.assert_array_equal(found, ordered(keys, distance))


@pytest.mark.parametrize(("distance", "kind"), [(1, "u32"), (2, "u32"), (2, "u8"), (4, "u64"), (32, "u32")])
def test_keys_change_places_without_masks(distance: int, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_avx512(monkeypatch, tmp_path)
    test_keys_change_places(distance, kind)


def test_one_window_serves_both() -> None:
    options = compile.Options(cpu="x86-64-v4")
    code = str(compile.emit(compile.front(swapping(2, "u32", 256)), "k", options, "llvm"))
    assert code.count("load <64 x i32>") == 1
    assert code.count("call void @llvm.masked.store.v64i32") == 1


def test_what_is_stored_between_two_loads_is_seen() -> None:
    keys = keys_of("u32")
    found = launch(swapping(2, "u32", 256, "st.shared.u32 [%r3], 99;"), keys)
    keys[places(2)] = 99
    np.testing.assert_array_equal(found, ordered(keys, 2))


@pytest.mark.parametrize(
    ("accesses", "line"),
    [
        ("ld.shared.u32 %r4, [%r3];\n ld.shared.u32 %r5, [%r3+8]; st.shared.u32 [keys], %r4; st.shared.u32 [keys], %r5;", 1),
        ("st.shared.u32 [%r3], %r1;\n st.shared.u32 [%r3+8], %r1;", 1),
        ("st.shared.u32 [%r3+8], %r1;\n st.shared.u32 [%r3], %r1;", 0),
    ],
)
def test_faults_name_the_access_and_the_thread(accesses: str, line: int) -> None:
    """The window ends in the second place of the last pair, which lane 31 alone has."""
    text = kernel(
        f"""mov.u32 %r1, %tid.x; and.b32 %r7, %r1, 1; shl.b32 %r8, %r1, 1; sub.u32 %r8, %r8, %r7; mov.u32 %r9, keys;
        mad.lo.u32 %r3, %r8, 4, %r9;\n{accesses}""",
        declarations=".shared .align 16 .b8 keys[252];\n",
    )
    place = 1 + text[: text.index(accesses)].count("\n") + line
    with pytest.raises(ptxemu.Fault, match=r"thread \(31,0,0\)") as fault:
        ptxemu.loads(text, filename="test.ptx")["k"][1, 32](np.zeros(1, "u4"))
    assert f"test.ptx:{place}" in str(fault.value)


@pytest.mark.parametrize(
    ("first", "second"), [("f32", "u32"), ("u32", "f32"), ("f64", "u64"), ("s64", "f64"), ("s16", "u16"), ("u8", "s8")]
)
def test_members_of_a_structure_have_types_of_their_own(first: str, second: str) -> None:
    """A number and an index side by side, as reductions for the place of the greatest have them."""
    size = int(first[1:]) // 8
    registers = {"f32": "%f", "f64": "%d", "u64": "%rd1", "s64": "%rd1"}
    a, b = (f"{registers.get(kind, '%r1')}{place}" for kind, place in ((first, 1), (second, 2)))
    text = kernel(
        f"""mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r9, pairs;
        mul.wide.u32 %rd3, %r1, {2 * size}; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        mad.lo.u32 %r2, %r1, {2 * size}, %r9;
        ld.global.{first} {a}, [%rd2]; ld.global.{second} {b}, [%rd2+{size}];
        st.shared.{first} [%r2], {a}; st.shared.{second} [%r2+{size}], {b}; bar.sync 0;
        ld.shared.{first} {a}, [%r2]; ld.shared.{second} {b}, [%r2+{size}];
        st.global.{first} [%rd1], {a}; st.global.{second} [%rd1+{size}], {b};""",
        PARAMETERS,
        f".shared .align 16 .b8 pairs[{64 * size}];\n",
    )
    given = np.random.default_rng(2).integers(0, 256, 64 * size, "u1") & 0x7B  # no NaNs
    np.testing.assert_array_equal(launch(text, given), given)

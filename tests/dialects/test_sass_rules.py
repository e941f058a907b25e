"""Rules of SURED and RED one by one."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.sass.memory import BIAS
from tests.dialects.test_sass import HEAD, LEGAL, SIZES, errors
from tests.support.sass_harness import device, memory, pairs, run

DIMS = {"1D": 1, "1D_BUFFER": 1, "1D_ARRAY": 2, "2D": 2, "2D_ARRAY": 3, "3D": 3}


def cells(values, **options):
    """A 1D surface of these words."""
    return device().surface(np.array(values, np.uint32), format="R32_UINT", geometry="1d", **options)


def updated(op, cases, wide=False):
    """What ``op`` leaves of each (old, value), through SURED and, on a copy in memory, through RED."""
    kind = np.dtype("u8" if wide else "u4")
    old, values = (np.array(column, kind) for column in zip(*cases, strict=True))
    surface, buffer = cells(old.view("u4")), device().to_device(old)
    start = buffer.address - device().arena.base + BIAS + np.arange(len(old)) * kind.itemsize
    program = [f"SURED.D.1D.{op}.TRAP [R4], R8, 0x52"] if "F64" not in op else []
    registers = {"R4": np.arange(len(old)), "R6": start, **pairs(values)}
    run([*program, *([f"RED.{op} [R6], R8"] if "SD" not in op else [])], registers, surface)
    results = [buffer.copy_to_host().tolist()] if "SD" not in op else []
    if program:
        results.append(surface.copy_to_host().view(kind).tolist())
    assert all(result == results[0] for result in results)
    return results[0]


# ---------------------------------------------------------------- 1: text


def test_what_has_no_meaning_changes_nothing():
    """Annotations in all notations, braces, comments, defaults and blanks leave the result as it is."""
    plain = ["SURED.D.1D.ADD [R4], R8, 0x52", "SURED.D.1D.MAX [R4], R4, 0x52"]
    spelled = [
        "/* both at\n once */ first: { @PT SURED.D.1D.ADD.U32.NEAR [R4], R8, 0x52 {&req_6} {&rd3} {?sched} ; # add",
        "  @!P6  SURED.D.1D.MAX.NEAR.U32 [ R4 ] , R4 , +82 &req={0,1} &wr=0x1 &rd=0x2 ?WAIT4_END_GROUP ?sched ; } // max",
        "@!PT SURED.D.1D.INC [R4], R8, 0x52 { &req = 6 } & req_6 {& req_6 } &wr = 0x1 & rd={ 0, 1 } { ? sched }\t? sched ;",
        "{", "}", ";",
    ]  # fmt: skip
    results = []
    for lines in (plain, spelled):
        surface = cells([0] * 8)
        run(lines, {"R4": np.arange(40) % 8, "R8": 3}, surface)
        results.append(surface.copy_to_host().tolist())
    assert results[0] == results[1] == [3 * 5] * 8


def test_aliases_of_sizes():
    """RED's .32 is .U32, .64 is .U64, and no size is .U32; SURED has no such names."""
    for words in (("ADD", "ADD.32", "ADD.U32"), ("ADD.64", "ADD.U64")):
        assert len({tuple(updated_red(word)) for word in words}) == 1
    assert "unknown modifier '.32'" in errors(HEAD + "SURED.D.1D.ADD.32 [R4], R8, 0x52")[0]
    assert "unknown modifier '.64'" in errors(HEAD + "SURED.D.1D.ADD.64 [R4], R8, 0x52")[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "SURED.D.1D.ADD.S64 [R4], R8, 0x52",
            "15: ILLEGAL_OP_TYPE: 'SURED.ADD' has no type .S64, only .U32, .S32, .SD32, .U64, .F32",
        ),
        ("SURED.D.1D.DEC.S32 [R4], R8, 0x52", "15: ILLEGAL_OP_TYPE: 'SURED.DEC' has no type .S32, only .U32"),
        ("SURED.D.1D.ADD.F64.RN [R4], R8, 0x52", "15: ILLEGAL_OP_TYPE: 'SURED.ADD' has no type .F64.RN, only"),
        ("@P1 RED.E.MIN.SD64 [R4], R8", "14: ILLEGAL_OP_TYPE: 'RED.MIN' has no type .SD64, only"),
        ("RED.XOR.64 [R4], R8", "ok"),
        ("RED.OR.F16x2.RN [R4], R8", "7: ILLEGAL_OP_TYPE: 'RED.OR' has no type .F16x2.RN, only .U32, .S32 or .U64"),
    ],
)
def test_illegal_pairs_have_their_name(line, message):
    """A pair outside the table is the assemble error ILLEGAL_OP_TYPE, at the type."""
    found = errors(HEAD + line)
    assert not found if message == "ok" else message in found[0], found


def test_a_misaligned_coordinate_has_no_address():
    """The fault of a byte coordinate names surface and coordinates, and no address."""
    with pytest.raises(ptxemu.Fault) as caught:
        run("SURED.D.BA.1D.ADD [R4], R8, 0x52", {"R4": 6, "R8": 1}, cells([0] * 4))
    record = caught.value.record
    assert (record["kind"], record["code"], record["coordinates"]) == ("misaligned address", 716, (6, 0, 0, 0))
    assert (record["space"], record["address"]) == (None, None)
    assert "address 0x" not in str(caught.value) and "4-byte access of surface" in str(caught.value)


def updated_red(op):
    buffer = device().to_device(np.full(2, 0xFFFFFFFF, np.uint32))
    run(f"RED.{op} [R6], R8", {"R6": buffer.address - device().arena.base + BIAS, "R8": 2, "R9": 0})
    return buffer.copy_to_host().tolist()


def test_a_false_guard_does_not_fetch_the_header():
    """Not even an invalid header or a misaligned address matters to a lane whose guard is false."""
    lines = ["@!PT SURED.D.BA.1D.ADD.TRAP [R4], R8, R10", "@P0 SURED.D.BA.1D.ADD.TRAP [R4], R8, R10", "@P0 RED.ADD [R4], R8"]
    run(lines, {"R4": 99, "R8": 1, "R10": 99}, options={"invalid_header": "fault"})
    with pytest.raises(ptxemu.Fault, match="invalid surface handle"):
        run(lines[0].replace("!", ""), {"R4": 99, "R8": 1, "R10": 99}, options={"invalid_header": "fault"})


@pytest.mark.parametrize("op", LEGAL)
def test_carets_of_illegal_pairs(op):
    """An operation on a size that it lacks is one error, whose caret marks the operation or the size."""
    lines, marked = [], []
    for size, letters in zip(SIZES, LEGAL[op].split(), strict=True):
        for letter, text in (("S", f"SURED.D.1D.{op}.{size} [R4], R8, 0x52"), ("R", f"RED.{op}.{size} [R4], R8")):
            if letter not in letters:
                lines.append(text)
                marked.append((f".{op}", f".{size}"))
    found = ptxemu.lint("\n".join([HEAD.rstrip(), *lines[:19], "EXIT"]), dialect="sass")
    assert [item.line - 3 for item in found] == list(range(1, len(found) + 1)) and len(found) == min(19, len(lines))
    for item, words in zip(found, marked, strict=False):
        shown, caret = item.render().split("\n")[1:3]
        under = "".join(ch for ch, mark in zip(shown, caret.ljust(len(shown)), strict=False) if mark in "^~")
        assert under in words, item.render()


# ---------------------------------------------------------------- 3.1: coordinates and registers


@pytest.mark.parametrize("dim", DIMS)
def test_where_coordinates_may_start(dim):
    """One coordinate in any register, two in an even one, three in a multiple of four; not RZ; all of them exist."""
    align = (1, 1, 2, 4)[DIMS[dim]]
    registers = [0, 1, 2, 3, 4, 5, 6, 248, 250, 251, 252, 253, 254]
    for number in registers:
        found = errors(f"{HEAD}SURED.D.{dim}.ADD [R{number}], R8, 0x52")
        assert (found == []) == (number % align == 0 and number + DIMS[dim] - 1 <= 254), number
    assert "may not lie in RZ" in errors(f"{HEAD}SURED.D.{dim}.ADD [RZ], R8, 0x52")[0]
    assert "header word may not be RZ" in errors(f"{HEAD}SURED.D.{dim}.ADD [R4], R8, RZ")[0]


@pytest.mark.parametrize("size", SIZES)
def test_where_operands_may_lie(size):
    """Rb is any register for 32 bits and F16x2, an even pair for 64 bits; RZ is zero for all."""
    for number in (0, 1, 7, 8, 252, 253, 254):
        text = f"RED.ADD.{size} [R4], R{number}" if size == "F64.RN" else f"SURED.D.1D.ADD.{size} [R4], R{number}, 0x52"
        text = text.replace("ADD", "MIN") if size in ("S64", "SD64") else text
        legal = "64" not in size or (number % 2 == 0 and number < 254)
        assert (errors(HEAD + text) == []) == legal, text
        assert errors(HEAD + text.replace(f", R{number}", ", RZ")) == []


def test_packing_of_operands():
    """64 bits have the low word first; F16x2 has lane 0 in the low half, and no carry between them."""
    assert updated("ADD.U64", [(0xFFFFFFFF, 1), (0, 2**32 + 7)], wide=True) == [2**32, 2**32 + 7]
    # 1.0 + 1.0 and 2.0 + 0.5; the greatest number overflows alone
    assert updated("ADD.F16x2.RN", [(0x40003C00, 0x38003C00), (0x00007BFF, 0x00007BFF)]) == [0x41004000, 0x00007C00]


# ---------------------------------------------------------------- 3.2: units and raw data


@pytest.mark.parametrize("format", ["R8_UINT", "R16_SNORM", "R8G8B8A8_UNORM", "R32G32_SINT", "R32G32B32A32_FLOAT"])
def test_data_are_raw_and_x_has_the_size_of_the_operation(format):
    """Whatever the texels are, x counts operations of 4 or 8 bytes and nothing is converted."""
    for words, unit in (("", 4), (".U64", 8)):
        for scaled in ("", ".BA"):
            surface = device().surface((96 // FORMAT_BYTES[format],), format=format, geometry="1d")
            x = np.array([0, 2, 96 // unit - 1, 96 // unit])
            registers = {"R4": x * (unit if scaled else 1), "R8": 0x80FF017F, "R9": 0}
            run(f"SURED.D{scaled}.1D.ADD{words}.IGN [R4], R8, 0x52", registers, surface)
            expected = np.zeros(24, np.uint32)
            expected[x[:3] * unit // 4] = 0x80FF017F
            assert (memory(surface)[:96].view("u4") == expected).all()


FORMAT_BYTES = {"R8_UINT": 1, "R16_SNORM": 2, "R8G8B8A8_UNORM": 4, "R32G32_SINT": 8, "R32G32B32A32_FLOAT": 16}


# ---------------------------------------------------------------- 3.3, 3.4, 5: headers, clamps, geometry

ACCEPTS = {"1d": "1D", "1d_buffer": "1D 1D_BUFFER", "a1d": "1D_ARRAY", "2d": "2D", "a2d": "2D_ARRAY", "3d": "3D",
           "cube": "2D_ARRAY", "acube": "2D_ARRAY"}  # fmt: skip
SHAPES = {"1d": (8,), "1d_buffer": (8,), "a1d": (2, 8), "2d": (4, 8), "a2d": (2, 4, 8), "3d": (2, 4, 8), "cube": (6, 8, 8),
          "acube": (12, 8, 8)}  # fmt: skip


@pytest.mark.parametrize("geometry", ACCEPTS)
def test_dims_and_geometries(geometry):
    """A dim that is not the surface's is a geometry mismatch, with every clamp; cubes are 2D arrays of faces."""
    layout = "linear" if geometry == "1d_buffer" else "pitch"
    surface = device().surface(SHAPES[geometry], format="R32_UINT", geometry=geometry, layout=layout)
    registers = {"R4": 0, "R5": 0, "R6": 0, "R8": 1}
    for number, dim in enumerate(DIMS):
        text = f"SURED.D.{dim}.ADD.{('IGN', 'NEAR', 'TRAP')[number % 3]} [R4], R8, 0x52"
        if dim in ACCEPTS[geometry].split():
            run(text, registers, surface)
        else:
            with pytest.raises(ptxemu.Fault, match="surface geometry mismatch"):
                run(text, registers, surface)
    assert memory(surface).view("u4").sum() == len(ACCEPTS[geometry].split())


def test_a_buffer_coordinate_that_traps():
    """With TRAP x is unsigned too, so -4 is too high."""
    surface = device().surface((8,), format="R32_UINT", geometry="1d_buffer", layout="linear")
    with pytest.raises(ptxemu.Fault, match="x=4294967292"):
        run("SURED.D.BA.1D_BUFFER.ADD.TRAP [R4], R8, 0x52", {"R4": -4, "R8": 5}, surface)


def test_invalid_and_disabled_headers_are_silent_for_every_clamp():
    """The update is dropped, and counted if the header is invalid; invalid_header=fault makes that an error."""
    text = ".header 3 image\n.kernel k\n.in R10 word\n{}\nEXIT"
    lines = [f"SURED.D.BA.{dim}.ADD.{clamp} [R4], R8, R10" for dim in DIMS for clamp in ("IGN", "NEAR", "TRAP")]
    module = ptxemu.loads(text.format("\n".join(lines)), dialect="sass", device=device())
    surface = device().surface((4,), format="R32_UINT", geometry="1d", enabled=False)
    module.bind("image", surface)
    headers = np.array([3, 0xABC00003, 4, 0xFFFFF], np.uint32)
    assert module["k"][1, 4](headers).surface_drops == 2 * len(lines)


# ---------------------------------------------------------------- 4, 4.1: arithmetic


@pytest.mark.parametrize("kind", ["SINT", "UINT", "SNORM", "UNORM", "FLOAT"])
def test_the_kind_of_the_format_gives_the_sign(kind):
    """SD32 is signed on SINT, unsigned on UINT; on others unsigned and counted, but only where the sign matters."""
    surface = device().surface((4,), format=f"R{32 if kind[-3:] == 'INT' or kind == 'FLOAT' else 16}_{kind}", geometry="1d")
    results = []
    for op in ("MIN", "MAX", "ADD", "AND", "OR", "XOR"):
        memory(surface)[:4] = 0xFF
        text = f".header 3 image\n.kernel k\nMOV32I R10, 0x3\nMOV32I R8, 0x1\nSURED.D.1D.{op}.SD32 [R4], R8, R10\nEXIT"
        module = ptxemu.loads(text, dialect="sass", device=device())
        module.bind("image", surface)
        counted = module["k"][1, 1]().format_mismatches
        assert counted == (op in ("MIN", "MAX") and kind not in ("SINT", "UINT"))
        results.append(int(memory(surface)[:4].view("u4")[0]))
    signed = [0xFFFFFFFF, 1] if kind == "SINT" else [1, 0xFFFFFFFF]
    assert results == [*signed, 0, 1, 0xFFFFFFFF, 0xFFFFFFFE]


def test_counters():
    """The examples of INC and DEC."""
    assert updated("INC", [(3, 3), (2, 3), (4, 3), (7, 0), (0, 0)]) == [0, 3, 0, 0, 0]
    assert updated("DEC", [(0, 3), (4, 3), (3, 3), (1, 0)]) == [3, 3, 2, 0]


def test_integers_wrap():
    """Sums modulo 2^32 and 2^64; signed and unsigned are the same but for MIN and MAX."""
    cases = [(0xFFFFFFFF, 1), (0x80000000, 0x80000000), (0x7FFFFFFF, 1), (5, 0xFFFFFFFD)]
    for op in ("ADD", "AND", "OR", "XOR"):
        assert updated(f"{op}.U32", cases) == updated(f"{op}.S32", cases)
    assert updated("ADD.S32", cases) == [0, 0, 0x80000000, 2]
    assert updated("ADD.U64", [(2**64 - 1, 1), (2**63, 2**63)], wide=True) == [0, 0]
    assert updated("MIN.S32", [(0xFFFFFFFF, 1)]) == [0xFFFFFFFF] and updated("MIN.U32", [(0xFFFFFFFF, 1)]) == [1]
    assert updated("MAX.S64", [(2**64 - 1, 1)], wide=True) == [1] and updated("MAX.U64", [(1, 2**64 - 1)], wide=True) == [
        2**64 - 1
    ]


def test_floats_of_32_bits():
    """F32.FTZ.RN flushes operands and result to zeros of their sign, rounds to even, and has one NaN."""
    cases = [(0x00800000, 0x80000001), (1, 1), (0x80000001, 0x80000001), (0x00800001, 0x80800000), (0x80800001, 0x00800000),
             (0x3F800000, 0x33800000), (0x3F800001, 0x33800000), (0x7F800000, 0xFF800000), (0x7FC01234, 0x3F800000),
             (0x7F7FFFFF, 0x7F7FFFFF)]  # fmt: skip
    assert updated("ADD.F32.FTZ.RN", cases) == [0x00800000, 0, 0x80000000, 0, 0x80000000, 0x3F800000, 0x3F800002, 0x7FFFFFFF,
                                                0x7FFFFFFF, 0x7F800000]  # fmt: skip


def test_halves():
    """MIN and MAX prefer a number to a NaN, -0 is less than +0; .FTZ flushes subnormals, else they stay."""
    both = [(0x7E003C00, 0x3C007E00), (0x7E007C01, 0x7E007E00), (0x80000000, 0x00008000)]
    assert updated("MIN.F16x2.RN", both) == [0x3C003C00, 0x7FFF7FFF, 0x80008000]
    assert updated("MAX.F16x2.RN", both) == [0x3C003C00, 0x7FFF7FFF, 0x00000000]
    assert updated("ADD.F16x2.RN", [(0x80010001, 0x80010001)]) == [0x80020002]
    assert updated("ADD.F16x2.FTZ.RN", [(0x80010001, 0x80010001)]) == [0x80000000]
    assert updated("ADD.F16x2.RN", [(0x7C003C00, 0xFC003C00)]) == [0x7FFF4000]


def test_doubles_keep_subnormals():
    """F64.RN is the IEEE sum."""
    one = 0x3FF0000000000000
    assert updated("ADD.F64.RN", [(1, 1), (1 << 63 | 3, 1), (one, one)], wide=True) == [2, 1 << 63 | 2, one + (1 << 52)]


# ---------------------------------------------------------------- 6: order and bytes


def test_updates_of_one_thread_stay_in_order():
    """Little-endian memory, in which the updates of one thread to one address keep their order."""
    buffer = device().to_device(np.array([9, 0], np.uint32))
    lines = ["RED.ADD [R4], R8", "RED.MIN [R4], R9", "RED.ADD [R4], R8", "RED.XOR.64 [R4], R10", "RED.ADD [R4], R8"]
    run(lines, {"R4": buffer.address - device().arena.base + BIAS, "R8": 5, "R9": 3, "R10": 0x0100, "R11": 0x02000000})
    assert bytes(buffer.copy_to_host().view(np.uint8)) == bytes([13, 1, 0, 0, 0, 0, 0, 2])


def test_helper_lanes():
    """The mask of helper lanes is that of every warp, and joins the guard; RED and SURED become NOPs."""
    surface, buffer = cells([0] * 64), device().to_device(np.zeros(64, np.uint32))
    base = buffer.address - device().arena.base + BIAS
    lanes = np.arange(64)
    program = [".helper 0xf0f0f0f0", "LOP.AND R5, R4, 0x1", "ISETP.EQ.AND P0, PT, R5, RZ, PT",
               "@P0 SURED.D.1D.ADD.TRAP [R4], R8, 0x52", "@P0 RED.ADD [R6], R8"]  # fmt: skip
    run(program, {"R4": lanes, "R6": base + 4 * lanes, "R8": 1}, surface)
    expected = [int(lane % 2 == 0 and lane % 8 < 4) for lane in range(64)]
    assert surface.copy_to_host().tolist() == buffer.copy_to_host().tolist() == expected

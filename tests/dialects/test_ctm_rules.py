"""CTM: the corners of the notes' rules, by section: masks, predicates, state of the outputs, groups, layouts, compares."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ptxemu
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.dialects.ctm.memory import FORMATS as CODES
from ptxemu.dialects.ctm.memory import describe, surface_of
from tests.support.ctm_harness import FORMATS, bits, device, module, run, target

OWN, SHARED = "RNDR_TGT_UMRT_PER_PROCESSOR_IDX", "RNDR_TGT_UMRT_SAME_IDX"
UMRT = [".output A a"]
LETTERS = "rgba"
SUBNORMAL = 0x00000001


def channels(mask: int) -> str:
    return "".join(letter for place, letter in enumerate(LETTERS) if mask >> place & 1) or "none"


def lint(text: str, strict: bool = False) -> list[str]:
    return [f"{item.line}: {item.severity}: {item.message}" for item in ptxemu.lint(text, filename="x.ctm", strict=strict)]


# ---------------------------------------------------------------- cached output


@pytest.mark.parametrize("name", FORMATS)
def test_every_mask_on_every_format(name):
    """OMASK and the predicate select channels, set_out_mask removes some at the end, the rest keeps its content."""
    for static, outer in ((15, 15), (11, 15), (15, 6), (7, 13)):
        surface = target(name, 1, width=16)
        head = [".output A a", f".set_out_mask {outer}"]
        line = f"OUTPUT MOV.RNDR_TGT_A.PRED_SEL_RGBA out.{channels(static)}, 0"
        run(line, {"pred": np.arange(16)}, surfaces={"a": surface}, head=head)
        texels = surface.copy_to_host().reshape(16, -1)
        written = static & outer & np.arange(16)
        expected = 1 - (written[:, None] >> np.arange(texels.shape[1]) & 1)
        assert (texels == expected).all(), (static, outer)


def test_a_launch_covers_the_domain():
    """Every point of the domain runs, or nothing does; surplus threads are no points, and have no rows."""
    text = ".kernel k cached\n.domain 2 1 5 3\n.point r0\n.out r0 z\nOUTPUT NOP\n"
    kernel = ptxemu.loads(text, filename="x.ctm", device=device())["k"]
    places = np.zeros((3, 4, 4), np.float32)
    kernel[1, (32, 4)](places)
    y, x = np.mgrid[1:4, 2:6]
    assert (places[..., 0] == x).all() and (places[..., 1] == y).all()
    for grid, block in ((1, (3, 3)), (1, (4, 2)), ((3, 2), 1)):
        with pytest.raises(ptxemu.InputError, match=r"works on 4 x 3 points \(.domain\), more than the . x . threads"):
            kernel[grid, block](places)
    whole = ptxemu.loads(".kernel k cached\n.out r0 z\nOUTPUT NOP\n", filename="x.ctm", device=device())["k"]
    for grid, block in (((1, 1, 2), (2, 2)), (1, (2, 1, 2))):
        with pytest.raises(ptxemu.InputError, match=r"works on points \(x, y\): z of grid and block must be 1"):
            whole[grid, block](np.zeros((8, 4), np.float32))
    assert lint(".kernel k\n") == ["1: error: expected .kernel NAME cached|umrt"]


def test_a_last_output_that_writes_nothing():
    """The last instruction is an OUTPUT, even one that writes nothing; the strict rule holds for each kernel."""
    text = ".kernel one umrt\n.output A a\nALU MOV r0, 1\n.kernel two cached\nOUTPUT MOV r0, 1\n.kernel three cached\nALU NOP\n"
    assert lint(text) == []
    message = "error: the last instruction of a program must be an OUTPUT"
    assert lint(text, strict=True) == [f"3: {message}", f"7: {message}"]


# ---------------------------------------------------------------- predicates


def test_subtractions_give_all_comparisons():
    """< and >= of a - b, > and <= of b - a; infinity minus infinity is NaN and passes NOT_EQUAL alone."""
    values = [-2.0, 0.0, 3.5, np.inf, -np.inf, np.nan]
    a, b = (np.array(list(column), np.float32) for column in zip(*itertools.product(values, values), strict=True))
    a, b = np.resize(a, 64), np.resize(b, 64)
    lines = ["ALU ADD.PRED_OP_LESS pred.r, r0, -r1", "ALU ADD.PRED_OP_GREATER_EQUAL pred.g, r0, -r1",
             "ALU ADD.PRED_OP_LESS pred.b, r1, -r0", "ALU ALPHA ADD.PRED_OP_GREATER_EQUAL pred, r1, -r0"]  # fmt: skip
    more = ["ALU ADD.PRED_OP_EQUAL pred.r, r0, -r1", "ALU ADD.PRED_OP_NOT_EQUAL pred.g, r0, -r1"]
    registers = {"r0": np.repeat(a[:, None], 4, 1), "r1": np.repeat(b[:, None], 4, 1)}
    found = run(lines, registers, ["pred"])["pred"]
    equal = run(more, registers, ["pred"])["pred"]
    with np.errstate(invalid="ignore"):
        difference = a - b
        tests = [difference < 0, difference >= 0, -difference < 0, -difference >= 0]
        assert (found == np.array(tests).T @ [1, 2, 4, 8]).all()
        assert (equal == np.array([difference == 0, difference != 0]).T @ [1, 2]).all()
    infinite = np.isinf(a) & (a == b)
    assert infinite.any() and not found[infinite].any() and (equal[infinite] == 2).all()


def test_both_units_see_the_old_state():
    """The old predicate gates all of an instruction; both units read registers before either writes."""
    lines = "ALU RGB MOV.PRED_OP_LESS r1|pred, r2; ALPHA MOV.PRED_SEL_RRRR.PRED_OP_EQUAL r2|pred, r1.r"
    registers = {"r1": [[5.0, 6, 7, 8]], "r2": [[-1.0, -2, 3, 4]]}
    for before, alpha in ((1, 5.0), (0, 4.0)):
        found = run(lines, {**registers, "pred": [before]}, ["r1", "r2", "pred"])
        assert found["r1"].view(np.float32).tolist() == [[-1, -2, 3, 8]]
        assert found["r2"].view(np.float32).tolist() == [[-1, -2, 3, alpha]]
        assert found["pred"].tolist() == [0b0011]


def test_predicates_start_at_zero():
    """All bits are 0 at first, so that a select passes nothing and its inverse everything; NONE ignores INV."""
    lines = ["ALU MOV.PRED_SEL_RGBA r1, 1", "ALU MOV.PRED_SEL_AAAA.PRED_INV r2, 1", "ALU MOV.PRED_INV r3, 1"]
    found = run(lines, {"r0": [[0.0] * 4]}, ["r1", "r2", "r3"])
    assert [(found[name] != 0).all() for name in ("r1", "r2", "r3")] == [False, True, True] and not found["r1"].any()


@pytest.mark.parametrize("inverted", [False, True])
def test_units_select_for_themselves(inverted):
    """PRED_SEL and PRED_INV are separate for RGB and alpha, on temporaries and outputs."""
    rgb, alpha = (".PRED_INV", "") if inverted else ("", ".PRED_INV")
    surface = target("FLOAT32_4", width=16)
    lines = f"OUTPUT RGB MOV.RNDR_TGT_A.PRED_SEL_BBBB{rgb} r1|out, 1; ALPHA MOV.RNDR_TGT_A.PRED_SEL_RGBA{alpha} r1|out, 1"
    found = run(lines, {"pred": np.arange(16)}, ["r1"], surfaces={"a": surface}, head=[".output A a"])["r1"] != 0
    expected = [[(p >> 2 & 1) ^ inverted] * 3 + [(p >> 3 & 1) ^ (not inverted)] for p in range(16)]
    assert found.tolist() == expected and (surface.copy_to_host()[0] != 0).tolist() == expected


# ---------------------------------------------------------------- UMRT


def umrt(points, surface, name=OWN, **more):
    lines = f"OUTPUT MOV.OMOD_DISABLED.{name} out, r0"
    return run(lines, {"r0": bits(points)}, kind="umrt", surfaces={"a": surface}, head=UMRT, **more)["result"]


COORDINATES = np.array([-np.inf, -1e30, -(2.0**31), -1, -0.99999994, -0.5, -1e-40, 0, 1e-45, 0.99999994, 1, 2.5, 3, 3.9999998, 4,
                        2.0**24, 2.0**31, 2.0**32, 1e38, np.inf, np.nan, 1.5], np.float32)  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
def test_coordinates_are_truncated(strict):
    """Indices lose their fractions; NaN, infinities, what is below 0 or beyond the extents is dropped and counted."""
    pairs = np.array(list(itertools.product(COORDINATES, COORDINATES)), np.float32)
    pairs = np.concatenate([pairs, pairs[: -len(pairs) % 32]])
    red = np.arange(1, len(pairs) + 1, dtype=np.float32)
    points = np.column_stack([red, pairs, np.zeros(len(pairs), np.float32)]).astype(np.float32)
    surface = target("FLOAT32_1", width=4, height=3)
    result = umrt(points, surface, strict=strict)
    expected, dropped = np.zeros((3, 4), np.float32), 0
    for value, (x, y) in zip(red, pairs.astype(float), strict=True):
        if np.isfinite(x) and np.isfinite(y) and 0 <= (column := int(x)) < 4 and 0 <= (row := int(y)) < 3:
            expected[row, column] = value
        else:
            dropped += 1
    assert (surface.copy_to_host() == expected).all() and result.umrt_dropped == dropped > 200
    assert f"{dropped} UMRT writes out of bounds were dropped" in result.warnings


def test_subnormal_alpha_is_zero():
    """+-0 and subnormals are a zero alpha in strict mode."""
    points = bits([[7.0, x, 0, 0] for x in range(4)])
    points[:, 3] = [0x80000000, SUBNORMAL, 0x807FFFFF, 0]
    surface = target("FLOAT32_1")
    umrt(points, surface, strict=True)
    assert surface.copy_to_host().tolist() == [[7] * 4]
    points[2, 3] = 0x00800000
    with pytest.raises(ptxemu.Fault, match=r"alpha is not zero.*thread \(2,0,0\)") as fault:
        umrt(points, surface, strict=True)
    assert "<string>:" in str(fault.value)


@pytest.mark.parametrize("group", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("mode", ["own", "shared", "masked"])
def test_groups(group, mode):
    """Groups of a size share the indices of their first writing point; the last red remains."""
    rng = np.random.default_rng(group)
    count = 64
    points = np.column_stack([np.arange(1, count + 1), rng.integers(-1, 9, (count, 2)), np.zeros(count)]).astype(np.float32)
    full = rng.integers(0, 3, count) > 0 if mode == "masked" else np.ones(count, bool)
    name = OWN if mode == "own" else SHARED
    surface = target("FLOAT32_1", width=8, height=8)
    lines = f"OUTPUT MOV.{name}.PRED_SEL_RRRR out, r0"
    result = run(lines, {"r0": points, "pred": full.astype(np.uint32)}, kind="umrt", surfaces={"a": surface}, head=UMRT,
                 options={"umrt_group": str(group)})["result"]  # fmt: skip
    expected, dropped = np.zeros((8, 8), np.float32), 0
    leader: dict[int, tuple[float, float]] = {}
    for place in np.flatnonzero(full):
        own = points[place, 1], points[place, 2]
        x, y = own if mode == "own" else leader.setdefault(place // group, own)
        if 0 <= x < 8 and 0 <= y < 8:
            expected[int(y), int(x)] = points[place, 0]
        else:
            dropped += 1
    assert (surface.copy_to_host() == expected).all() and result.umrt_dropped == dropped > 0


def test_indices_are_compared_when_they_are_truncated():
    """Strict groups have one index; fractions do not make it another."""
    surface = target("FLOAT32_1")
    umrt([[1.0, 1.25, 0, 0], [2.0, 1.75, 0, 0]], surface, SHARED, strict=True)
    assert surface.copy_to_host().tolist() == [[0, 2, 0, 0]]


def test_the_output_modifier_acts_on_red():
    """Red is stored as it is, unless the instruction's modifier changes it."""
    surface = target("FLOAT32_1")
    line = f"OUTPUT RGB MOV.OMOD_U2.{OWN} out, r0; ALPHA MOV out, 0"
    points = bits([[1.5, 0.5, 0, 0], [0.0, 1, 0, 0]])
    points[1, 0] = 0xFFC12345
    run(line, {"r0": points}, kind="umrt", surfaces={"a": surface}, head=UMRT)
    assert surface.copy_to_host().view(np.uint32).tolist() == [[0, bits(3.0), 0x7FFFFFFF, 0]]


@pytest.mark.parametrize("name", ["FLOAT32_2", "FLOAT32_4", "UINT16_1", "UINT8_4"])
def test_the_format_is_checked_before_the_bounds(name):
    """UMRT writes another format nowhere, not even out of bounds; a predicate that is zero writes nothing."""
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        umrt([[1.0, -1, 0, 0]], target(name))
    run(f"OUTPUT MOV.{OWN}.PRED_SEL_RRRR out, r0", {"r0": [[1.0, 0, 0, 0]]}, kind="umrt", surfaces={"a": target(name)}, head=UMRT)


def test_reads_of_what_nothing_writes_are_synchronized():
    """UNSYNCED_READ needs a write, a read of the same surface, and no ACQUIRE anywhere."""
    head = ".kernel k umrt\n.output A a\n.input 0 a\n.input 1 b\n"
    write, read = f"OUTPUT MOV.{OWN} out, r0\n", "TEX r1, r0, inp0\n"
    assert [item[:26] for item in lint(f"{head}{write}{read}")] == ["6: warning: UNSYNCED_READ:"]
    assert [item[:26] for item in lint(f"{head}{read}{write}")] == ["5: warning: UNSYNCED_READ:"]
    for quiet in (read, f"{write}TEX r1, r0, inp1\n", f"{write}{read}OUTPUT MOV.{SHARED}_TEX_SEM_ACQUIRE out, r0\n"):
        assert lint(f"{head}{quiet}OUTPUT NOP\n") == []


def test_reads_by_another_name_are_counted():
    """UNSYNCED_READ by another name shows when both names are bound to memory that overlaps."""
    head = [".output A a", ".input 0 b", ".input 1 c"]
    lines = [f"OUTPUT MOV.{OWN} out, r0", "TEX r1, r0, inp0", "TEX r2, r0, inp1", "TEX r3, r0, inp0"]
    one, two = (target("FLOAT32_1", height=2) for _ in range(2))
    memory = one.surface
    row = SurfaceObject(Surface(memory.arena, "R32_FLOAT", 4, address=memory.address + 16), device().surface_table)
    for b, c, count in ((two, two, 0), (one, two, 2), (two, one, 1), (one, one, 3), (row, two, 2)):
        result = run(lines, {"r0": [[5.0, 1, 0, 0]]}, kind="umrt", surfaces={"a": one, "b": b, "c": c}, head=head)["result"]
        assert result.unsynced_reads == count
        assert [text[:15] for text in result.warnings] == [f"{count} UNSYNCED_READ"] * (count > 0)
    synced = [*lines, f"OUTPUT MOV.{SHARED}_TEX_SEM_ACQUIRE out, r0"]
    result = run(synced, {"r0": [[5.0, 1, 0, 0]]}, kind="umrt", surfaces={"a": one, "b": one, "c": one}, head=head)["result"]
    assert result.unsynced_reads == 0


def test_state_of_cached_output_means_nothing_to_umrt():
    """UMRT writes leave before the mask and the test; a program that sets them is warned."""
    text = ".kernel k umrt\n.output A a\n.conditional b\n.set_cond_test 0\n.set_out_mask 1\n" + f"OUTPUT MOV.{OWN} out, 0\n"
    assert lint(text) == [f"{line}: warning: {what} has no effect on uncached output"
                          for line, what in ((3, ".conditional"), (4, ".set_cond_test"), (5, ".set_out_mask"))]  # fmt: skip
    loaded, surface = module(text), target("FLOAT32_1", 9.0, width=1)
    loaded.bind("a", surface)
    loaded["k"][1, 1]()
    assert surface.copy_to_host().tolist() == [[0]]


# ---------------------------------------------------------------- descriptions


def test_every_code_and_every_reserved_bit():
    """Codes 0 to 4 exist, 5 to 7 do not; reserved bits are zero; the base's low 11 bits do not count."""
    for code in range(8):
        word = code << 24 | 64
        if code < 5:
            assert describe(0x1FFF, word, 16).name == CODES[code][0] and describe(0x1FFF, word, 16).base == 0x1800
            continue
        with pytest.raises(ptxemu.InputError, match=f"data format {code} is reserved"):
            describe(0, word, 16)
    for bit in [0, 1, 13, 14, 15, *range(18, 24), *range(27, 32)]:
        with pytest.raises(ptxemu.InputError, match="are reserved"):
            describe(0, 64 | 1 << bit, 16)
    for bit in range(13, 32):
        with pytest.raises(ptxemu.InputError, match="are reserved"):
            describe(0, 64, 16 | 1 << bit)


@pytest.mark.parametrize("tiling", range(4))
def test_tilings_of_registers_and_directives(tiling):
    """INP_2X2 in either place reads neighbours, outputs ignore it; ``tiling=ignore`` takes tiles as rows."""
    word = tiling << 16 | 2 << 24 | 4
    memory = device().empty(1024, np.float32)
    surface = surface_of(device(), memory, 0x800, word, 2, tiling="ignore")
    name = ("LINEAR", "TILED", "LINEAR_INP_2X2", "TILED_INP_2X2")[tiling]
    plain = surface_of(device(), memory, 0x800, 2 << 24 | 4, 2)
    expected = [3, 6, 7, 2] if tiling >= 2 else [2, 0, 0, 1]
    for bound, word_of in ((surface, "LINEAR"), (plain, name)):
        head = [f".input 0 a {word_of}", f".output A a {name}", ".point r9"]
        lines = ["TEX r1, r0, inp0", "OUTPUT MOV.RNDR_TGT_A out.r, 0.5"]
        memory.array[512:520] = np.arange(1, 9)
        found = run(lines, {"r0": [[1.0, 0, 0, 0]]}, ["r1"], surfaces={"a": bound}, head=head, options={"tiling": "ignore"})
        assert found["r1"].view(np.float32).tolist() == [expected]
        assert memory.array[512:520].tolist() == [0.5, *range(2, 9)]


def test_neighbours_of_no_place():
    """NaN, infinite and huge coordinates lie outside, and so do their neighbours; those of -1 are the first texels."""
    surface = target("FLOAT32_1", np.arange(16.0).reshape(4, 4) + 1, width=4, height=4)
    nowhere = [np.nan, np.inf, -np.inf, 3e9, -3e9]
    points = [*((x, 0) for x in nowhere), *((0, y) for y in nowhere), (-1, 0), (0, -1), (-1, -1)]
    found = run(
        "TEX r1, r0, inp0", {"r0": [[x, y, 0, 0] for x, y in points]}, ["r1"], surfaces={"a": surface},
        head=[".input 0 a LINEAR_INP_2X2"],
    )  # fmt: skip
    texels = found["r1"].view(np.float32).tolist()
    assert texels[: len(points) - 3] == [[0] * 4] * (len(points) - 3)
    assert texels[-3:] == [[1, 0, 5, 0], [0, 1, 2, 0], [0, 0, 1, 0]]


# ---------------------------------------------------------------- the conditional test


@pytest.mark.parametrize("code", range(8))
def test_subnormals_compare_as_zeros(code):
    """v against b; subnormals are zeros on either side, NaN is unordered."""
    words = np.array([0, 0x80000000, SUBNORMAL, 0x807FFFFF, 0x00800000, 0x80800000, 0x7FC00000], np.uint32)
    v, b = (np.resize(np.array(column, np.uint32), 64) for column in zip(*itertools.product(words, words), strict=True))
    surfaces = {"a": target("FLOAT32_1", 9.0, width=64), "b": target("FLOAT32_1", b.view(np.float32)[None], width=64)}
    head = [".output A a", ".conditional b", f".set_cond_test {code}"]
    line = "OUTPUT RGB MOV.RNDR_TGT_A out.r, 0; ALPHA MOV.OMOD_DISABLED.W_OMASK r1.none, r0.r"
    run(line, {"r0": np.repeat(v[:, None], 4, 1)}, surfaces=surfaces, head=head)
    x, y = (np.where(w & 0x7F800000 == 0, 0, w).astype(np.uint32).view(np.float32) for w in (v, b))
    tests = [np.zeros(64, bool), x < y, x <= y, x == y, x >= y, x > y, x != y, np.ones(64, bool)]
    assert ((surfaces["a"].copy_to_host()[0] == 0) == tests[code]).all()
    assert (surfaces["b"].copy_to_host()[0].view(np.uint32) == np.where(tests[code], v, b)).all()


def test_the_buffer_is_updated_without_an_output():
    """A point that only sends a value takes part in the test; the buffer's format converts it."""
    surface = target("UINT16_1", 0x8000, width=4)
    lines = "OUTPUT ALPHA MOV.W_OMASK r1.none, r0.r"
    values = [0.25, 0.5, 0.75, 2.0]
    run(lines, {"r0": [[value] * 4 for value in values]}, surfaces={"b": surface}, head=[".conditional b", ".set_cond_test 5"])
    assert surface.copy_to_host().tolist() == [[0x8000, 0x8000, 49151, 65535]]

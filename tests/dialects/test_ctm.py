"""CTM: the worked examples and rules of the notes, arithmetic and predicates against tables and NumPy."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import ptxemu
from tests.support.ctm_harness import bits, device, module, run, target

FLUSHED = 0x7F800000
CANONICAL = 0x7FFFFFFF
PREDICATE = {"EQUAL": "1100000", "LESS": "0001010", "GREATER_EQUAL": "1110100", "NOT_EQUAL": "0011111"}
CLASSES = [[0, 0x80000000], [1, 0x80000001, 0x007FFFFF], [0x3F800000, 0x00800000], [0xBF800000, 0x80800000],
           [0x7F800000], [0xFF800000], [0x7FC00000, 0xFFC12345, 0x7F800001]]  # fmt: skip
SPECIAL = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800001, 0x3F000000, 0x3F000001, 0x3F800000, 0xBF800000,
     0x40490FDB, 0xC2F6E979, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345],
    np.uint32,
)  # fmt: skip


def flush(words):
    words = np.asarray(words, np.uint32)
    return np.where(words & FLUSHED == 0, words & 0x80000000, words).astype(np.uint32)


def canonical(words):
    return np.where(words & 0x7FFFFFFF > FLUSHED, CANONICAL, words).astype(np.uint32)


def floats(words):
    return flush(words).view(np.float32)


def splat(words):
    """The same in all channels."""
    return np.repeat(np.asarray(words, np.uint32)[:, None], 4, axis=1)


# ---------------------------------------------------------------- predicate bits


@pytest.mark.parametrize("test", PREDICATE)
def test_predicate_table(test):
    values = [value for group in CLASSES for value in group]
    expected = [int(letter) for letter, group in zip(PREDICATE[test], CLASSES, strict=True) for _ in group]
    found = run(f"ALU MOV.OMOD_DISABLED.PRED_OP_{test} pred, r0", {"r0": splat(values)}, ["pred"])["pred"]
    assert found.tolist() == [15 * bit for bit in expected]


def test_the_test_sees_the_clamped_value():
    lines = ["ALU MOV.CLAMP.PRED_OP_EQUAL pred.r, r0", "ALU MOV.PRED_OP_EQUAL pred.g, r0", "ALU ALPHA MOV.PRED_OP_LESS pred, r0"]
    assert run(lines, {"r0": [[-1.0] * 4]}, ["pred"])["pred"].tolist() == [0b1001]


def test_bits_outside_the_mask_stay():
    lines = "ALU RGB MOV.PRED_OP_LESS pred.rb, r0; ALPHA MOV.PRED_OP_EQUAL pred.none, r0"
    assert run(lines, {"r0": [[1.0, -1, -1, 0]] * 2, "pred": [0b1001, 0b0111]}, ["pred"])["pred"].tolist() == [0b1100, 0b0110]


def test_units_have_their_own_tests():
    lines = "ALU RGB MOV.PRED_OP_LESS pred, r0; ALPHA MOV.PRED_OP_NOT_EQUAL pred, r0"
    assert run(lines, {"r0": [[-1.0, 1, -2, 5]]}, ["pred"])["pred"].tolist() == [0b1101]


def test_the_old_predicate_gates_the_temporary_alone():
    """The example of the guide: predicate 0x7, temporary mask 0xf, predicate mask 0xf."""
    lines = "ALU MOV.PRED_SEL_RGBA.PRED_OP_LESS r1|pred.rgba, r0"
    found = run(lines, {"r0": [[-1.0, 2, -3, -4]], "r1": [[9.0] * 4], "pred": [7]}, ["r1", "pred"])
    assert found["r1"].view(np.float32).tolist() == [[-1, 2, -3, 9]]
    assert found["pred"].tolist() == [0b1101]


SELECTS = {"NONE": None, "RGBA": (0, 1, 2, 3), "RRRR": (0,) * 4, "GGGG": (1,) * 4, "BBBB": (2,) * 4, "AAAA": (3,) * 4}


def effective(predicate: int, select: str, inverted: bool, mask: int = 15) -> int:
    places = SELECTS[select]
    if places is None:
        return mask
    chosen = sum((predicate >> place & 1) << channel for channel, place in enumerate(places))
    return mask & (chosen ^ (15 if inverted else 0))


@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("inverted", [False, True])
def test_selects(select, inverted):
    """All selects, inverted or not, on all sixteen predicates."""
    lines = f"ALU MOV.PRED_SEL_{select}{'.PRED_INV' if inverted else ''} r1, r0"
    found = run(lines, {"r0": [[1.0] * 4] * 16, "pred": np.arange(16)}, ["r1"])["r1"] != 0
    assert (found @ [1, 2, 4, 8]).tolist() == [effective(predicate, select, inverted) for predicate in range(16)]


def test_the_select_examples():
    assert [effective(5, "RGBA", False), effective(5, "RGBA", True)] == [5, 10]
    assert [effective(5, "GGGG", False), effective(5, "GGGG", True)] == [0, 15]


# ---------------------------------------------------------------- arithmetic

PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)), np.uint32)
PAIRS = np.concatenate([PAIRS, PAIRS[: -len(PAIRS) % 32]])


def choice(first, a, b):
    return np.where(first, a, b)


def test_minimum_and_maximum_keep_bits():
    a, b = PAIRS.T
    lines = ["ALU MIN.OMOD_DISABLED.CLAMP r2, r0, r1", "ALU MAX.OMOD_DISABLED r3, r0, r1"]
    found = run(lines, {"r0": splat(a), "r1": splat(b)}, ["r2", "r3"])
    x, y = floats(a), floats(b)
    assert (found["r2"] == splat(choice(x < y, a, b))).all()
    assert (found["r3"] == splat(choice((x >= y) & ~((x == 0) & (y == 0)), a, b))).all()
    zeros = run(lines[0], {"r0": splat([0]), "r1": splat([0x80000000])}, ["r2"])["r2"]
    assert zeros.tolist() == [[0x80000000] * 4]


@pytest.mark.parametrize("rule", ["any", "condition"])
def test_conditional_moves(rule):
    """CND and CMP; with the rule ``any``, a NaN in any source gives the second."""
    a, c = PAIRS.T
    b = np.roll(a, 1)
    lines = ["ALU CND.OMOD_DISABLED r3, r0, r1, r2", "ALU CMP.OMOD_DISABLED r4, r0, r1, r2"]
    found = run(lines, {"r0": splat(a), "r1": splat(b), "r2": splat(c)}, ["r3", "r4"], options={"choice_nan": rule})
    numbers = ~(np.isnan(floats(a)) | np.isnan(floats(b))) | (rule == "condition")
    assert (found["r3"] == splat(choice((floats(c) > 0.5) & numbers, a, b))).all()
    assert (found["r4"] == splat(choice((floats(c) >= 0) & numbers, a, b))).all()


FACTORS = {"U1": 1, "U2": 2, "U4": 4, "U8": 8, "D2": 0.5, "D4": 0.25, "D8": 0.125}


def modified(words, factor=1.0):
    with np.errstate(all="ignore"):
        return canonical(flush((floats(words) * np.float32(factor)).view(np.uint32)))


@pytest.mark.parametrize("name", FACTORS)
def test_output_modifiers(name):
    words = np.resize(np.concatenate([SPECIAL, np.random.default_rng(1).integers(0, 2**32, 46, np.uint32)]), 64)
    lines = [f"ALU MOV.OMOD_{name} r1, r0", f"ALU MAX.OMOD_{name}.CLAMP r2, r0, r0"]
    found = run(lines, {"r0": splat(words)}, ["r1", "r2"])
    expected = modified(words, FACTORS[name])
    assert (found["r1"] == splat(expected)).all()
    values = expected.view(np.float32)
    clamped = np.where(np.isnan(values), 0, np.clip(values, 0, 1)).astype(np.float32)
    assert (found["r2"].view(np.float32) == splat(clamped.view(np.uint32)).view(np.float32)).all()


def test_modifier_examples():
    found = run(["ALU MOV.OMOD_D2 r1, r0", "ALU MOV.OMOD_U1 r2, r0", "ALU MAX.OMOD_DISABLED r3, r0, r0"],
                {"r0": splat([0x00800001, 0x80800001, 0xFFC12345])}, ["r1", "r2", "r3"])  # fmt: skip
    assert found["r1"][:, 0].tolist() == [0, 0x80000000, CANONICAL]
    assert found["r2"][:, 0].tolist() == [0x00800001, 0x80800001, CANONICAL]
    assert found["r3"][:, 0].tolist() == [0x00800001, 0x80800001, 0xFFC12345]


def test_sums_products_and_fractions():
    rng = np.random.default_rng(2)
    drawn = rng.integers(0, 2**32, (256, 2), np.uint32)
    a, b = np.concatenate([PAIRS, drawn, rng.uniform(-9, 9, (256, 2)).astype(np.float32).view(np.uint32)]).T
    a, b = a[: len(a) // 32 * 32], b[: len(b) // 32 * 32]
    c = np.roll(b, 3)
    lines = ["ALU ADD r3, r0, r1", "ALU MUL r4, r0, r1", "ALU MAD r5, r0, r1, r2", "ALU FRC r6, r0"]
    found = run(lines, {"r0": splat(a), "r1": splat(b), "r2": splat(c)}, ["r3", "r4", "r5", "r6"])
    x, y, z = floats(a), floats(b), floats(c)
    with np.errstate(all="ignore"):
        results = {"r3": x + y, "r4": x * y, "r6": x - np.floor(x)}
    for name, values in results.items():
        assert (found[name][:, 0] == canonical(flush(values.view(np.uint32)))).all(), name
    for word, *sources in zip(found["r5"][:, 0], x, y, z, strict=True):
        assert is_nearest(word.view(np.float32), *sources), sources


def is_nearest(value, x, y, z):
    """Whether a float is x * y + z rounded once, and flushed."""
    if not np.isfinite([x, y, z]).all():
        with np.errstate(all="ignore"):
            expected = np.float64(x) * np.float64(y) + np.float64(z)
        return value == expected or (np.isnan(value) and np.isnan(expected))
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if abs(exact) < Fraction(2) ** -126:
        return value == 0 or abs(value) == np.float32(2.0**-126)
    if not np.isfinite(value):
        return abs(exact) >= 2**128 - 2**103
    step = Fraction(2) ** (int(np.abs(value).view(np.uint32) >> 23) - 150)
    return abs(Fraction(float(value)) - exact) <= step / 2


def test_signs_and_swizzles_read_bits():
    lines = ["ALU MOV.OMOD_DISABLED r1, -r0.abgr", "ALU MOV.OMOD_DISABLED r2, -|r0|", "ALU MOV r3, r0.rh01",
             "ALU RGB MOV r4, r0.b; ALPHA MOV r4, -1", "ALU MOV.OMOD_DISABLED r0.rg, r0.grrr"]  # fmt: skip
    words = np.array([[1, 0x80000002, 0x7FC00001, 0xBF800000]], np.uint32)
    found = run(lines, {"r0": words}, ["r0", "r1", "r2", "r3", "r4"])
    assert found["r1"].tolist() == [[0x3F800000, 0xFFC00001, 2, 0x80000001]]
    assert found["r2"].tolist() == [[0x80000001, 0x80000002, 0xFFC00001, 0xBF800000]]
    assert found["r3"].tolist() == [[0, 0x3F000000, 0, 0x3F800000]]
    assert found["r4"].tolist() == [[CANONICAL] * 3 + [0xBF800000]]
    assert found["r0"].tolist() == [[0x80000002, 1, 0x7FC00001, 0xBF800000]]


# ---------------------------------------------------------------- cached output


def test_the_last_write_of_a_channel_wins():
    """The example: R=1, G=2, then G=5; B and A stay."""
    surface = target("FLOAT32_4", 9.0, width=2)
    lines = ["OUTPUT MOV.RNDR_TGT_A out.rg, r0", "OUTPUT MOV.RNDR_TGT_A out.g, r1"]
    run(lines, {"r0": [[1.0, 2, 3, 4]], "r1": [[5.0] * 4]}, surfaces={"a": surface}, head=[".output A a"])
    assert surface.copy_to_host().tolist() == [[[1, 5, 9, 9], [9, 9, 9, 9]]]


def test_units_write_different_targets():
    surfaces = {name: target("FLOAT32_4", 9.0, width=1) for name in "abcd"}
    lines = ["OUTPUT RGB MOV.RNDR_TGT_A out, r0; ALPHA ADD.RNDR_TGT_B out, r0, r0", "OUTPUT MOV.RNDR_TGT_D out.b, r0"]
    head = [f".output {name.upper()} {name}" for name in surfaces]
    run(lines, {"r0": [[1.0, 2, 3, 4]]}, surfaces=surfaces, head=head)
    found = {name: surface.copy_to_host().ravel().tolist() for name, surface in surfaces.items()}
    assert found == {"a": [1, 2, 3, 9], "b": [9, 9, 9, 8], "c": [9, 9, 9, 9], "d": [9, 9, 3, 9]}


def test_predicated_output_and_the_output_mask():
    surface = target("FLOAT32_4", 9.0, width=16)
    head = [".output A a", ".point r1", ".set_out_mask 0x7"]
    lines = ["OUTPUT MOV.RNDR_TGT_A.PRED_SEL_RGBA.PRED_INV out, r0"]
    run(lines, {"r0": [[1.0] * 4] * 16, "pred": np.arange(16)}, surfaces={"a": surface}, head=head)
    found = (surface.copy_to_host()[0] == 1) @ [1, 2, 4, 8]
    assert found.tolist() == [effective(predicate, "RGBA", True, 7) for predicate in range(16)]


def test_nothing_is_written_before_the_end():
    """An input that is the target still holds the old texels."""
    surface = target("FLOAT32_1", [5.0, 6, 7, 8])
    head = [".output A a", ".input 0 a", ".point r0"]
    lines = ["OUTPUT MOV.RNDR_TGT_A out.r, r0", "TEX r1, r0, inp0"]
    found = run(lines, {"r9": [[0.0] * 4] * 4}, ["r1"], surfaces={"a": surface}, head=head)
    assert found["r1"].view(np.float32).tolist() == [[value, 0, 0, 1] for value in (5, 6, 7, 8)]
    assert surface.copy_to_host().tolist() == [[0, 1, 2, 3]]


def test_an_output_may_also_write_a_temporary():
    surface = target("FLOAT32_1", 9.0, width=1)
    found = run("OUTPUT MOV.RNDR_TGT_A r1.gb|out.r, r0", {"r0": [[1.0, 2, 3, 4]]}, ["r1"], surfaces={"a": surface},
                head=[".output A a"])  # fmt: skip
    assert found["r1"].view(np.float32).tolist() == [[0, 2, 3, 0]] and surface.copy_to_host().tolist() == [[1]]


def test_the_domain():
    surface = target("FLOAT32_2", 9.0, width=6, height=5)
    head = [".domain 2 1 4 3", ".output A a", ".point r0"]
    found = run("OUTPUT MOV.RNDR_TGT_A out.rg, r0", {"r9": [[0.0] * 4] * 9}, ["r0"], surfaces={"a": surface}, head=head,
                grid=(2, 2), block=(4, 2))  # fmt: skip
    expected = np.full((5, 6, 2), 9.0)
    for y, x in itertools.product(range(1, 4), range(2, 5)):
        expected[y, x] = x, y
    assert (surface.copy_to_host() == expected).all()
    assert found["r0"].view(np.float32)[:, :2].tolist() == [[x, y] for y in (1, 2, 3) for x in (2, 3, 4)]


def test_points_outside_the_target_are_dropped():
    surface = target("FLOAT32_1", 9.0, width=3)
    run("OUTPUT MOV.RNDR_TGT_A out.r, r0", {"r0": [[1.0] * 4] * 8}, surfaces={"a": surface}, head=[".output A a"])
    assert surface.copy_to_host().tolist() == [[1, 1, 1]]


# ---------------------------------------------------------------- formats


@pytest.mark.parametrize("name", ["UINT16_1", "UINT8_4", "FLOAT32_1", "FLOAT32_2", "FLOAT32_4"])
def test_formats_are_read_and_written(name):
    """Integers are fractions of their greatest value, missing channels 0, a missing alpha 1."""
    rng = np.random.default_rng(5)
    components = int(name[-1])
    most = {"UINT16_1": 65535, "UINT8_4": 255}.get(name)
    shape = (1, 32, components) if components > 1 else (1, 32)
    data = rng.uniform(-2, 2, shape).astype(np.float32) if most is None else rng.integers(0, most, shape, endpoint=True)
    source, copy = target(name, data, width=32), target(name, width=32)
    head = [".input 3 source", ".output A copy", ".point r0"]
    lines = ["TEX r1, r0, inp3", "OUTPUT MOV.RNDR_TGT_A out, r1"]
    found = run(lines, {"r9": [[0.0] * 4] * 32}, ["r1"], surfaces={"source": source, "copy": copy}, head=head)["r1"]
    values = data.reshape(32, components).astype(np.float32)
    expected = np.tile(np.array([0, 0, 0, 1], np.float32), (32, 1))
    expected[:, :components] = values if most is None else values / np.float32(most)
    assert (found.view(np.float32) == expected).all()
    assert (copy.copy_to_host() == source.copy_to_host()).all()


def test_integers_that_are_not_fractions():
    surface = device().surface(np.full((1, 8), 9, np.uint16), format="R16_UINT")
    values = [0.5, 1.5, 2.4999, 65534.5, 1e9, -3.0, np.nan, np.inf]
    head = [".output A a", ".input 0 a", ".point r1"]
    lines = ["OUTPUT MOV.RNDR_TGT_A out.r, r0", "TEX r2, r1, inp0"]
    found = run(lines, {"r0": [[value] * 4 for value in values]}, ["r2"], surfaces={"a": surface}, head=head,
                options={"float_to_uint": "integer"})  # fmt: skip
    assert surface.copy_to_host().tolist() == [[0, 2, 2, 65534, 65535, 0, 0, 65535]]
    assert found["r2"].view(np.float32)[:, 0].tolist() == [9] * 8
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        run(lines, {"r0": [[0.0] * 4]}, ["r2"], surfaces={"a": surface}, head=head)


def test_neighbours():
    surface = target("FLOAT32_1", np.arange(12.0).reshape(3, 4) + 1, width=4, height=3)
    head = [".input 0 a LINEAR_INP_2X2"]
    found = run("TEX r1, r0, inp0", {"r0": [[1.0, 1, 0, 0], [3.5, 2.5, 0, 0]]}, ["r1"], surfaces={"a": surface}, head=head)
    assert found["r1"].view(np.float32).tolist() == [[7, 10, 11, 6], [0, 0, 0, 12]]
    wide = target("FLOAT32_2")
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        run("TEX r1, r0, inp0", {"r0": [[0.0] * 4]}, ["r1"], surfaces={"a": wide}, head=head)


# ---------------------------------------------------------------- UMRT

OWN, SHARED = "RNDR_TGT_UMRT_PER_PROCESSOR_IDX", "RNDR_TGT_UMRT_SAME_IDX"
UMRT_HEAD = [".output A a"]


def plane():
    return target("FLOAT32_1", width=64, height=16)


def umrt(points, surface, name=OWN, mask="", **more):
    registers = {"r0": np.asarray(points, np.float32)}
    return run(f"OUTPUT MOV.{name} out{mask}, r0", registers, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD, **more)


def written(surface):
    """Byte offset and value of the texels that are not zero."""
    texels = surface.copy_to_host().ravel()
    return {4 * int(place): float(texels[place]) for place in np.flatnonzero(texels)}


EXAMPLES = [
    ([1.5, 3.0, 2.0, 0], "", {524: 1.5}, None, None),
    ([7, 3.9, 2.2, 0], "", {524: 7}, None, None),
    ([7, 64, 0, 0], "", {}, None, None),
    ([7, 3, 2, 1], "", {524: 7}, "alpha is not zero", None),
    ([7, 3, 2, 0], ".rgb", {}, "some channels only", 1),
    ([7, 3, 2, 0], ".none", {}, None, None),
    ([7, -0.5, 0, 0], "", {0: 7}, None, None),
    ([7, -1.0, 0, 0], "", {}, None, None),
    ([7, 0, -0.0, -0.0], "", {0: 7}, None, None),
    ([7, np.nan, 0, 0], "", {}, None, None),
    ([7, 0, np.inf, 0], "", {}, None, None),
    ([7, 0, 16, 0], "", {}, None, None),
    ([7, 3, 2, np.nan], "", {524: 7}, "alpha is not zero", None),
]


@pytest.mark.parametrize("name", [OWN, SHARED, f"{OWN}_TEX_SEM_ACQUIRE", f"{SHARED}_TEX_SEM_ACQUIRE"])
def test_umrt_examples(name):
    for point, mask, expected, error, partial in EXAMPLES:
        surface = plane()
        found = umrt([point], surface, name, mask)["result"]
        assert written(surface) == expected, point
        assert found.umrt_dropped == (not expected and mask == "") and found.umrt_partial == (partial or 0)
        surface = plane()
        if error is None:
            umrt([point], surface, name, mask, strict=True)
            assert written(surface) == expected
            continue
        with pytest.raises(ptxemu.Fault, match=error):
            umrt([point], surface, name, mask, strict=True)
        assert written(surface) == {}


def test_a_shared_index_is_that_of_the_first_writing_point():
    points = [[1.0, 5, 0, 0], [2.0, 5, 0, 0], [3.0, 5, 0, 0], [4.0, 5, 0, 0], [5.0, 9, 1, 0], [6.0, 8, 1, 0]]
    surface = plane()
    umrt(points, surface, SHARED)
    assert written(surface) == {20: 4, 256 + 36: 6}
    with pytest.raises(ptxemu.Fault, match=r"one group with different indices.*x=8, y=1"):
        umrt(points, plane(), SHARED, strict=True)
    surface = plane()
    umrt(points, surface, SHARED, options={"umrt_group": "2"})
    assert written(surface) == {20: 4, 256 + 36: 6}
    surface = plane()
    umrt(points, surface)
    assert written(surface) == {20: 4, 256 + 36: 5, 256 + 32: 6}


def test_points_whose_predicate_is_zero_do_not_write():
    points = [[1.0, 1, 0, 0], [2.0, 2, 0, 0], [3.0, 3, 0, 0], [4.0, 4, 0, 0]]
    surface = plane()
    lines = f"OUTPUT MOV.{SHARED}.PRED_SEL_RRRR out, r0"
    run(lines, {"r0": points, "pred": [14, 1, 0, 1]}, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD)
    assert written(surface) == {8: 4}
    lines = f"OUTPUT MOV.{OWN}.PRED_SEL_RGBA out, r0"
    found = run(lines, {"r0": points, "pred": [15, 7, 0, 8]}, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD)
    assert written(surface) == {4: 1, 8: 4} and found["result"].umrt_partial == 2
    with pytest.raises(ptxemu.Fault, match=r"some channels only.*thread \(1,0,0\)"):
        run(lines, {"r0": points, "pred": [15, 7, 0, 8]}, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD, strict=True)


def test_red_keeps_its_bits():
    values = np.array([0x7FC12345, 0x80000000, 0xFF800001, 0x00000001], np.uint32)
    points = np.zeros((4, 4), np.uint32)
    points[:, 0], points[:, 1] = values, bits(np.arange(4.0))
    surface = plane()
    run(f"OUTPUT MOV.OMOD_DISABLED.{OWN} out, r0", {"r0": points}, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD)
    assert surface.copy_to_host()[0, :4].view(np.uint32).tolist() == values.tolist()


def test_the_alpha_units_target_is_ignored():
    lines = f"OUTPUT RGB MOV.{OWN} out, r0; ALPHA MOV.RNDR_TGT_C out, r0"
    surface = plane()
    run(lines, {"r0": [[2.0, 1, 0, 0]]}, kind="umrt", surfaces={"a": surface}, head=UMRT_HEAD)
    assert written(surface) == {4: 2}


def test_umrt_writes_are_seen_at_once():
    head = [*UMRT_HEAD, ".input 0 a"]
    lines = [f"OUTPUT MOV.{OWN}_TEX_SEM_ACQUIRE out, r0", "TEX.TEX_SEM_ACQUIRE r1, r0.gbgb, inp0"]
    found = run(lines, {"r0": [[7.0, 3, 2, 0]]}, ["r1"], kind="umrt", surfaces={"a": plane()}, head=head)
    assert found["r1"].view(np.float32).tolist() == [[7, 0, 0, 1]]


@pytest.mark.parametrize("format", ["FLOAT32_2", "FLOAT32_4", "UINT16_1", "UINT8_4"])
def test_umrt_needs_single_floats(format):
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        umrt([[1.0, 0, 0, 0]], target(format))


# ---------------------------------------------------------------- the conditional test

CONDITIONS = ["never", "less", "less_equal", "equal", "greater_equal", "greater", "not_equal", "always"]


@pytest.mark.parametrize("code", range(8))
def test_conditions(code):
    v = np.array([0, 1, 2, np.nan], np.float32)
    compare = [np.less, np.less_equal, np.equal, np.greater_equal, np.greater, np.not_equal]
    expected = [code == 7] * 4 if code in (0, 7) else compare[code - 1](v, np.float32(1)).tolist()
    surfaces = {"a": target("FLOAT32_1", 9.0), "b": target("FLOAT32_1", 1.0)}
    head = [".output A a", ".conditional b", f".set_cond_test {code}"]
    lines = "OUTPUT RGB MOV.RNDR_TGT_A out.r, 0.5; ALPHA MOV.W_OMASK.RNDR_TGT_A out.none, r0.r"
    run(lines, {"r0": [[value] * 4 for value in v]}, surfaces=surfaces, head=head)
    assert (surfaces["a"].copy_to_host()[0] == 0.5).tolist() == expected
    found = surfaces["b"].copy_to_host()[0]
    assert np.array_equal(found, np.where(expected, v, 1), equal_nan=True)


@pytest.mark.parametrize(("location", "mask"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_where_the_value_comes_from_and_goes(location, mask):
    """The processors send 2, the processing engine 3; only values above 2.5 pass."""
    surfaces = {"a": target("FLOAT32_1", 9.0, width=1), "b": target("FLOAT32_1", 2.5, width=1)}
    head = [".output A a", ".conditional b", ".set_cond_test 5", f".set_cond_loc {location}", f".set_cond_out_mask {mask}",
            ".engine_value 3.0"]  # fmt: skip
    run("OUTPUT RGB MOV.RNDR_TGT_A out.r, 1; ALPHA MOV.W_OMASK.RNDR_TGT_A out.none, r0", {"r0": [[2.0] * 4]},
        surfaces=surfaces, head=head)  # fmt: skip
    assert surfaces["a"].copy_to_host().tolist() == [[1 if location else 9]]
    assert surfaces["b"].copy_to_host().tolist() == [[3 if location and mask else 2.5]]


# ---------------------------------------------------------------- constants


def test_constants_come_from_the_program_and_from_an_array():
    text = """.kernel first cached
.const c1 = 0.5 -2 0f7f800000 1e-3
.constants values
.out r0 out
ALU MOV r0.rgb, c1
ALU ADD r0.a, c0.g, c2
.kernel second cached
.const c1 = 7
.out r0 out
OUTPUT MOV r0, c1
"""
    loaded = module(text)
    values, found = np.arange(12, dtype=np.float32), np.zeros((2, 4), np.float32)
    loaded["first"][1, 2](values, found)
    assert found.tolist() == [[0.5, -2, np.inf, 1 + 11]] * 2
    loaded["second"][1, 2](found)
    assert found.tolist() == [[7] * 4] * 2

"""The same updates through all instruction sets leave the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dialects.cross_fronts import FRONTS, Step, agree, device, final_bytes

LAYOUTS = {
    "pitch": {"layout": "pitch"}, "swizzled": {"layout": "block_linear"},
    "linear": {"layout": "block_linear", "gob_order": "linear"},
}  # fmt: skip
SHAPES = {"1d": (16,), "2d": (4, 16), "3d": (3, 4, 16), "a1d": (3, 16), "a2d": (2, 4, 16)}


def surface(geometry: str, layout: str, seed: int = 0, format: str = "R32_UINT"):
    data = np.random.default_rng(seed).integers(0, 2**32, SHAPES[geometry], dtype=np.uint32)
    texels = data.view(np.float32) if format == "R32_FLOAT" else data
    return device().surface(texels, format=format, geometry=geometry, **LAYOUTS[layout])


def test_the_example():
    """A 16 x 4 R32_UINT pitch surface: texel (2, 1) is at byte 72."""
    step = Step("add", "u32", ((2, 1, 0, 0),), (5,))
    results = {
        name: final_bytes(front, lambda: device().surface((4, 16), format="R32_UINT"), [step]) for name, front in FRONTS.items()
    }
    ran = {name: data for name, data in results.items() if data is not None}
    assert list(ran) == ["ptx sured", "ptx red", "sass sured", "sass red", "visa typed_atomic"]
    for data in ran.values():
        assert data == bytes(72) + b"\5" + bytes(256 - 73)


@pytest.mark.parametrize("geometry", SHAPES)
def test_out_of_bounds_leaves_everything_intact(geometry):
    outside = ((16, 0, 0, 0), (-1, 0, 0, 0), (0, -1, -1, 9), (0, 4, 3, 5), (2**29, 2**30, 2**30, 2**15))
    if geometry == "1d":
        outside = ((16, 0, 0, 0), (-1, 0, 0, 0), (2**29, 0, 0, 0))
    ran = agree(lambda: surface(geometry, "pitch"), [Step("add", "u32", outside, (1,) * len(outside))])
    before = bytes(surface(geometry, "pitch").copy_to_host())
    for name in ran:
        made = surface(geometry, "pitch")
        assert FRONTS[name](made, Step("add", "u32", outside, (1,) * len(outside)))
        assert bytes(made.copy_to_host()) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stores_reach_the_same_places(layout):
    """UMRT writes, surface stores, global stores and exchanges; lanes of one texel in order, places outside dropped."""
    rng = np.random.default_rng(7)
    where = tuple((int(x), int(y), 0, 0) for x, y in zip(rng.integers(-2, 19, 32), rng.integers(-2, 7, 32), strict=True))
    steps = [Step("exch", "u32", where, tuple(map(int, rng.integers(0, 2**32, 32)))) for _ in range(2)]
    ran = agree(lambda: surface("2d", layout, format="R32_FLOAT"), steps)
    assert ran == ["visa typed_atomic", "ptx sust", "ptx st", "ptx atom", "ctm umrt"]


@pytest.mark.parametrize("pitch", [64, 80, 192])
def test_stores_leave_the_padding(pitch):
    """Rows of 13 texels and padding: all stores write the same texels and no other byte."""
    rng = np.random.default_rng(pitch)
    where = tuple((int(x), int(y), 0, 0) for x, y in zip(rng.integers(-2, 16, 32), rng.integers(-2, 6, 32), strict=True))

    def make():
        made = device().surface((4, 13), format="R32_FLOAT", pitch=pitch)
        device().arena.view(made.surface.address, made.surface.total_bytes)[:] = 0xA5
        return made

    steps = [Step("exch", "u32", where, (0,) * 32)]
    assert agree(make, steps)[-1] == "ctm umrt"
    found = np.frombuffer(final_bytes(FRONTS["ctm umrt"], make, steps) or b"", np.uint8)
    expected = np.full(found.size, 0xA5, np.uint8)
    for x, y, *_ in where:
        if 0 <= x < 13 and 0 <= y < 4:
            expected[y * pitch + 4 * x :][:4] = 0
    assert (found == expected).all()


def test_layouts_hold_equal_texels():
    """The same program on pitch, linear-GOB and swizzled-GOB surfaces."""
    rng = np.random.default_rng(3)
    where = tuple((int(x), int(y), 0, 0) for x, y in zip(rng.integers(-1, 17, 32), rng.integers(-1, 5, 32), strict=True))
    steps = [Step(op, "u32", where, tuple(map(int, rng.integers(0, 2**32, 32)))) for op in ("add", "max", "and", "or")]
    for front in FRONTS.values():
        texels = []
        for layout in LAYOUTS:
            made = surface("2d", layout)
            if all(front(made, step) for step in steps):
                texels.append(made.copy_to_host().tolist())
        assert all(item == texels[0] for item in texels)


OPS = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch")
TYPES = ("u32", "s32", "u64", "s64", "f32")
EDGES = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x00000001_00000000, 2**63, 2**64 - 1)


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, str, list[Step]]:
    """A geometry, a layout, a format and one to three updates of up to 40 lanes, some outside and many on the same texel."""
    geometry, layout = draw(st.sampled_from(list(SHAPES))), draw(st.sampled_from(list(LAYOUTS)))
    format, steps = draw(st.sampled_from(["R32_UINT", "R32_FLOAT"])), []
    for _ in range(draw(st.integers(1, 3))):
        op, kind = draw(st.sampled_from(OPS)), draw(st.sampled_from(TYPES))
        unit = 2 if kind.endswith("64") else 1
        count = draw(st.integers(1, 40))
        axis = st.tuples(
            st.sampled_from(range(-unit, 17, unit)),
            st.integers(-1, 4),
            st.integers(-1, 3),
            st.integers(0, 3),
        )
        where = draw(st.lists(axis, min_size=count, max_size=count))
        value = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64 - 1))
        values = draw(st.lists(value, min_size=count, max_size=count))
        steps.append(Step(op, kind, tuple(where), tuple(values)))
    return geometry, layout, format, steps


@settings(max_examples=40)
@given(programs())
def test_random_programs(program):
    geometry, layout, format, steps = program
    agree(lambda: surface(geometry, layout, format=format), steps)


def test_every_front_takes_part():
    """Programs that many fronts can say, and each front one of them, so that agreement is never empty."""
    ran = {
        name
        for op in ("add", "exch")
        for name in agree(
            lambda: surface("2d", "pitch", format="R32_FLOAT"), [Step(op, "u32", ((1, 1, 0, 0),) * 8, tuple(range(8)))]
        )
    }
    assert ran == set(FRONTS)

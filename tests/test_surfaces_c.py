"""The surface engine's C entry points against the spec's vectors and a second model (surface_model)."""

from __future__ import annotations

import csv
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surface_model import MISALIGNED, NONE, TRAP, ModelSurface
from warp_calls import ALL_LANES, LANES, WarpCaller, int32

from ptxemu._runtime import ffi, lib
from ptxemu.surface_format import FORMATS

DATA = Path(__file__).parent / "data" / "spec"
GEOMETRY = {
    name: getattr(lib, f"PE_GEOM_{name.upper()}") for name in ("1d", "1d_buffer", "2d", "3d", "a1d", "a2d", "cube", "acube")
}
LAYOUT = {"linear": lib.PE_LAYOUT_LINEAR, "pitch": lib.PE_LAYOUT_PITCH, "block_linear": lib.PE_LAYOUT_BLOCK_LINEAR}
COORD = {"byte": lib.PE_COORD_BYTE, "scaled": lib.PE_COORD_SCALED, "texel": lib.PE_COORD_TEXEL}
CLAMP = {"trap": lib.PE_CLAMP_TRAP, "clamp": lib.PE_CLAMP_NEAREST, "zero": lib.PE_CLAMP_ZERO}
BY_BYTES = {1: "R8_UINT", 2: "R16_UINT", 4: "R32_UINT", 8: "R32G32_UINT", 16: "R32G32B32A32_UINT"}
GUARD = 256


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def describe(format: str = "R32_UINT", width: int = 1, height: int = 1, depth: int = 1, layers: int = 1, *,
             geometry: str = "2d", layout: str = "pitch", levels: int = 1, **fields: int) -> Any:  # fmt: skip
    """A descriptor before its layout is computed."""
    texel = FORMATS[format]
    desc = ffi.new("pe_surface_desc *")
    desc.state, desc.geom, desc.layout = lib.PE_SURFACE_VALID, GEOMETRY[geometry], LAYOUT[layout]
    desc.width, desc.height, desc.depth, desc.layers, desc.levels = width, height, depth, layers, levels
    desc.components, desc.bits = texel.components, texel.bits
    desc.kind, desc.order = getattr(lib, f"PE_KIND_{texel.kind}"), getattr(lib, f"PE_ORDER_{texel.order}")
    for name, value in fields.items():
        setattr(desc, name, value)
    return desc


def wrong(message: Any) -> str:
    return ffi.string(message).decode() if message else ""


class Texels:
    """A surface in the middle of a guarded NumPy buffer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.desc = describe(*args, **kwargs)
        assert wrong(lib.pe_surface_layout(self.desc)) == ""
        self.total = int(self.desc.total_bytes)
        raw = np.full(self.total + 2 * GUARD + 64, 0xA5, np.uint8)
        start = GUARD + (-raw.ctypes.data - GUARD) % 64
        self.all = raw
        self.start = start
        self.memory = raw[start : start + self.total]
        self.memory[:] = 0
        self.desc.base = ffi.cast("uint8_t *", self.memory.ctypes.data)
        self.desc.size = self.total
        assert wrong(lib.pe_surface_check(self.desc)) == ""

    @property
    def guards_intact(self) -> bool:
        outside = np.concatenate([self.all[: self.start], self.all[self.start + self.total :]])
        return bool((outside == 0xA5).all())


def context(table: Any = None, **policy: int) -> Any:
    ctx = ffi.new("pe_su_context *")
    for name, value in policy.items():
        setattr(ctx.policy, name, value)
    if table is not None:
        ctx.table = table
    return ctx


def access(geometry: str = "2d", size: int = 4, clamp: str = "trap", mode: str = "byte", format: int = 0) -> Any:
    geom = lib.PE_GEOM_ANY if geometry == "any" else GEOMETRY[geometry]
    return ffi.new("pe_su_access *", [geom, COORD[mode], size, CLAMP[clamp], format])


def coord(x: int = 0, y: int = 0, z: int = 0, layer: int = 0, level: int = 0) -> Any:
    return ffi.new("pe_su_coord *", [x, y, z, layer, level])


def resolve(desc: Any, how: Any, where: Any, **policy: int) -> int | str:
    """The byte offset, or an outcome in the model's words."""
    out = ffi.new("uint8_t **")
    status = lib.pe_su_resolve(context(**policy), desc, how, where, out)
    if status == lib.PE_OK:
        return int(ffi.cast("uintptr_t", out[0])) - int(ffi.cast("uintptr_t", desc.base))
    return {lib.PE_SU_NONE: NONE, lib.PE_SURFACE_TRAP: TRAP, lib.PE_MISALIGNED: MISALIGNED}.get(status, status)


def lenient(row: dict[str, str], name: str) -> int:
    return int(row[name] or 0)


# ---- vectors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("vectors_addressing.csv"), ids=lambda row: "-".join(list(row.values())[:16]))
def test_addressing_vector(row: dict[str, str]) -> None:
    layout = {"pitch": "pitch", "blocklinear": "block_linear"}[row["layout"]]
    extents = [max(1, lenient(row, name)) for name in ("width", "height", "depth", "layers")]
    desc = describe(
        BY_BYTES[int(row["elem_bytes"])], *extents, geometry=row["geom"], layout=layout, pitch=lenient(row, "pitch"),
        block_h_log2=lenient(row, "req_block_h_log2"), block_d_log2=lenient(row, "req_block_d_log2"),
    )  # fmt: skip
    assert wrong(lib.pe_surface_layout(desc)) == ""
    x_byte = int(row["x_elem"]) * int(row["elem_bytes"])
    offset = lib.pe_surface_offset(desc, 0, x_byte, int(row["y"]), int(row["z"]), int(row["layer"]))
    assert offset == int(row["byte_offset"])
    assert (desc.layer_stride, desc.total_bytes) == (int(row["layer_stride"]), int(row["total_bytes"]))
    if layout == "block_linear":
        assert desc.level[0].block_h_log2 == int(row["eff_block_h_log2"])
        assert desc.level[0].block_d_log2 == int(row["eff_block_d_log2"])


BOUNDS = rows("vectors_bounds.csv")


def bounds_surface(row: dict[str, str]) -> Texels:
    # The vectors leave the texel size open: any divisor of the row serves, and a1d rows use a padded layer.
    extents = [int(row[name]) for name in ("width_bytes", "height", "depth", "layers")]
    return Texels("R8_UINT", *extents, geometry=row["geom"], layout="pitch")


def bounds_expectation(row: dict[str, str], surface: Texels) -> int | str:
    if row["outcome"] != "ok":
        return {"trap": TRAP, "misaligned": MISALIGNED, "zero_or_drop": NONE}[row["outcome"]]
    effective = [int(row[name]) for name in ("eff_x_byte", "eff_y", "eff_z", "eff_layer")]
    return int(lib.pe_surface_offset(surface.desc, 0, *effective))


@pytest.mark.parametrize("index", range(len(BOUNDS)))
def test_bounds_vector(index: int) -> None:
    row = BOUNDS[index]
    surface = bounds_surface(row)
    mode = {"byte": "byte", "sample_scaled": "scaled"}[row["x_mode"]]
    size = int(row["access_bytes"])
    how = access(row["geom"], size, row["clamp"], mode)
    where = coord(*(int(row[name]) for name in ("x", "y", "z", "layer")))
    align = lib.PE_ALIGN_MASK if row["align_policy"] == "mask" else lib.PE_ALIGN_FAULT
    expected = bounds_expectation(row, surface)
    assert resolve(surface.desc, how, where, align=align) == expected

    # The same through load, store and reduction.
    ctx = context(align=align)
    surface.memory[:] = np.arange(surface.total, dtype=np.uint64) % 251
    before = surface.memory.copy()
    data = ffi.new("uint8_t[16]", [0xEE] * 16)
    lib.pe_su_load(ctx, surface.desc, how, where, data)
    inside = isinstance(expected, int)
    loaded = bytes(before[expected : expected + size]) if inside else bytes(size)
    assert bytes(data)[:size] == loaded
    lib.pe_su_store(ctx, surface.desc, how, where, b"\x11" * 16)
    touched = np.flatnonzero(surface.memory != before)
    assert set(touched) <= (set(range(expected, expected + size)) if inside else set())
    if inside:
        assert bytes(surface.memory[expected : expected + size]) == b"\x11" * size
    surface.memory[:] = before
    if size in (4, 8):
        type_ = lib.PE_TYPE_U32 if size == 4 else lib.PE_TYPE_U64
        lib.pe_su_atomic(ctx, surface.desc, how, where, lib.PE_ATOM_ADD, type_, 0, (1).to_bytes(8, "little"), b"", data)
        assert bytes(data)[:size] == loaded
        if inside:
            expected_sum = (int.from_bytes(loaded, "little") + 1) % (1 << 8 * size)
            assert bytes(surface.memory[expected : expected + size]) == expected_sum.to_bytes(size, "little")
        else:
            assert (surface.memory == before).all()
    assert surface.guards_intact


FORMAT_ROWS = rows("vectors_format_store.csv")


@pytest.mark.parametrize("index", range(len(FORMAT_ROWS)))
def test_format_store_vector(index: int) -> None:
    row = FORMAT_ROWS[index]
    bits, register = int(row["component_bits"]), int(row["source_register_bits"], 16)
    expected = int(row["stored_component_bits"], 16)
    assert lib.pe_format_component(getattr(lib, f"PE_KIND_{row['format_kind']}"), bits, register) == expected
    for letters in ("R", "RG", "RGBA"):
        name = "".join(f"{letter}{bits}" for letter in letters) + f"_{row['format_kind']}"
        surface = Texels(name, 3, geometry="1d", layout="linear", base_align=1)
        values = ffi.new("uint32_t[4]", [register] * 4)
        assert lib.pe_su_store_fmt(context(), surface.desc, access("1d", mode="texel"), coord(1), values, 0xF) == lib.PE_OK
        component = expected.to_bytes(bits // 8, "little")
        texel = component * len(letters)
        assert bytes(surface.memory) == bytes(len(texel)) + texel + bytes(len(texel))
        assert surface.guards_intact


# ---- layout ----------------------------------------------------------------------------------------------------------


def test_gob_swizzle_examples() -> None:
    desc = describe("R8_UINT", 64, 8, layout="block_linear")
    assert wrong(lib.pe_surface_layout(desc)) == ""
    examples = {(16, 0): 32, (32, 0): 256, (0, 1): 16, (0, 2): 64, (20, 3): 116, (48, 7): 496}
    for (x, y), offset in examples.items():
        assert lib.pe_surface_offset(desc, 0, x, y, 0, 0) == offset
    desc.gob_order = lib.PE_GOB_LINEAR
    assert lib.pe_surface_offset(desc, 0, 20, 3, 0, 0) == 3 * 64 + 20


def test_mip_level_example() -> None:
    desc = describe("R8_UINT", 64, 48, layout="block_linear", levels=7, block_h_log2=4)
    assert wrong(lib.pe_surface_layout(desc)) == ""
    assert [desc.level[i].offset for i in range(7)] == [0, 4096, 6144, 7168, 7680, 8192, 8704]
    assert [desc.level[i].block_h_log2 for i in range(3)] == [3, 2, 1]
    assert desc.layer_stride == 12288


def test_array_layer_example() -> None:
    desc = describe("R32_UINT", 20, 10, 1, 4, geometry="a2d", layout="block_linear", block_h_log2=4)
    assert wrong(lib.pe_surface_layout(desc)) == ""
    assert (desc.level[0].block_h_log2, desc.layer_stride) == (1, 2048)
    assert lib.pe_surface_offset(desc, 0, 7 * 4, 9, 0, 3) == 6716


def random_model(rng: np.random.Generator, lod: bool = False) -> tuple[ModelSurface, Texels]:
    geometry = str(rng.choice(["1d", "1d_buffer", "2d", "3d", "a1d", "a2d", "cube", "acube"]))
    layout = str(rng.choice(["pitch", "block_linear", "linear"] if geometry in ("1d", "1d_buffer") else ["pitch", "block_linear"]))
    elem = int(rng.choice([1, 2, 4, 8, 16]))
    width, height, depth = (int(value) for value in rng.integers(1, 40, 3))
    layers = {"a1d": 5, "a2d": 3, "cube": 6, "acube": 12}.get(geometry, 1)
    if geometry in ("1d", "1d_buffer", "a1d"):
        height = 1
    if geometry in ("cube", "acube"):
        height = width
    depth = depth if geometry == "3d" else 1
    levels = 1
    if lod and layout != "linear":
        levels = int(rng.integers(1, max(width, height, depth).bit_length() + 1))
    bh, bd = (int(value) for value in rng.integers(0, 6, 2))
    order = str(rng.choice(["swizzled", "linear"]))
    pitch = -(-width * elem // 16) * 16 + 16 * int(rng.integers(0, 3)) if layout == "pitch" else 0
    model = ModelSurface(geometry, elem, width, height, depth, layers, layout, pitch, bh, bd, order, levels)
    real = Texels(
        BY_BYTES[elem], width, height, depth, layers, geometry=geometry, layout=layout, levels=levels, pitch=pitch,
        block_h_log2=bh, block_d_log2=bd, gob_order=int(order == "linear"),
    )  # fmt: skip
    return model, real


@pytest.mark.parametrize("seed", range(40))
def test_resolve_follows_the_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, real = random_model(rng, lod=True)
    assert real.total == model.total
    edges = [-(2**40), -5, -4, -1, 0, 1, 2, 3, 2**31 - 1, 2**32 - 1, 2**40]
    for _ in range(200):
        mode, clamp = str(rng.choice(list(COORD))), str(rng.choice(list(CLAMP)))
        n = int(rng.choice([1, 2, 4, 8, 16]))
        limit = model.width * (model.elem if mode == "byte" else 1)

        def pick(extent: int) -> int:
            return int(rng.choice(edges)) if rng.random() < 0.15 else int(rng.integers(-2, extent + 3))

        x, y, z = pick(limit), pick(model.height), pick(model.depth)
        layer = int(rng.choice([0, 1, model.layers - 1, model.layers, 65536, 65537, 2**32 - 1]))
        level = int(rng.integers(0, model.n_levels + 1))
        mask, edge, bits = bool(rng.integers(2)), bool(rng.integers(2)), bool(rng.integers(2))
        expected = model.resolve(
            mode, n, x, y, z, layer, clamp, "mask" if mask else "fault", level, "allow" if edge else "reject",
            16 if bits else 32,
        )  # fmt: skip
        if level == model.n_levels and clamp == "clamp" and expected != MISALIGNED:
            expected = NONE
        got = resolve(
            real.desc, access(model.geometry, n, clamp, mode), coord(x, y, z, layer, level),
            align=int(mask), partial_edge=int(edge), layer_16bit=int(bits),
        )  # fmt: skip
        assert got == expected, (model, mode, n, x, y, z, layer, level, clamp, mask, edge, bits)


@pytest.mark.parametrize("seed", range(20))
def test_upload_and_download(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, real = random_model(rng, lod=True)
    for level, at in enumerate(model.levels):
        shape = (model.layers, at.depth, at.height, at.width * model.elem)
        dense = rng.integers(0, 256, shape).astype(np.uint8)
        lib.pe_surface_upload(real.desc, level, ffi.from_buffer(dense))
        for layer, z, y, x in zip(*(rng.integers(0, extent, 50) for extent in shape)):
            assert real.memory[model.offset(int(x), int(y), int(z), int(layer), level)] == dense[layer, z, y, x]
        back = np.empty_like(dense)
        lib.pe_surface_download(real.desc, level, ffi.from_buffer(back, require_writable=True))
        assert (back == dense).all()
    assert real.guards_intact


# ---- creation ----------------------------------------------------------------------------------------------------------

BAD = [
    (dict(width=0), "every extent must be at least 1"),
    (dict(width=4, height=2, geometry="1d"), "1d surface"),
    (dict(width=4, height=2, depth=2), "2d surface"),
    (dict(width=4, layers=2, geometry="3d"), "3d surface"),
    (dict(width=4, height=2, layers=2, geometry="a1d"), "1d array"),
    (dict(width=4, depth=2, layers=2, geometry="a2d"), "2d array"),
    (dict(width=4, height=4, layers=5, geometry="cube"), "cube surface"),
    (dict(width=4, height=5, layers=6, geometry="cube"), "cube surface"),
    (dict(width=4, height=4, layers=9, geometry="acube"), "cube array"),
    (dict(width=4, height=4, layout="linear"), "linear layout is for 1d"),
    (dict(width=4, geometry="1d", layout="linear", levels=2), "one mip level"),
    (dict(width=4, height=4, levels=4), "too many mip levels"),
    (dict(width=4, levels=0), "too many mip levels"),
    (dict(width=4, pitch=24), "multiples of the pitch alignment"),
    (dict(width=16, pitch=48), "pitch is smaller"),
    (dict(width=4, height=4, pitch=16, slice_stride=48), "slice stride is smaller"),
    (dict(width=4, height=4, layers=2, geometry="a2d", layer_stride=48), "layer stride is smaller"),
    (dict(width=4, height=4, layers=2, geometry="a2d", layer_stride=72), "layer stride is not aligned"),
    (dict(width=4, layout="block_linear", block_h_log2=6), "block size"),
    (dict(width=4, bits=24), "no such surface format"),
    (dict(width=4, components=3), "no such surface format"),
    (dict(width=4, kind=0), "no such surface format"),
    (dict(width=2**32 - 1, height=2**32 - 1, depth=2**32 - 1, geometry="3d"), "larger than the address space"),
    (dict(width=2**31, height=2**31, layers=2**31, geometry="a2d", layout="block_linear"), "larger than the address space"),
    (dict(width=4, height=4, pitch=2**63), "larger than the address space"),
    (dict(width=4, pitch_align=3), "powers of two"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_bad_descriptor(fields: dict[str, Any], message: str) -> None:
    assert message in wrong(lib.pe_surface_layout(describe(**fields)))


def test_bad_memory() -> None:
    surface = Texels("R32_UINT", 16, 4)
    surface.desc.size -= 1
    assert "smaller" in wrong(lib.pe_surface_check(surface.desc))
    surface.desc.size += 1
    surface.desc.base += 8
    assert "aligned" in wrong(lib.pe_surface_check(surface.desc))
    surface.desc.base = ffi.NULL
    assert "no memory" in wrong(lib.pe_surface_check(surface.desc))


def test_short_pitch_alignment() -> None:
    """CTM pitches are multiples of the texel only."""
    desc = describe("R16_UNORM", 4, 3, pitch=8, pitch_align=2)
    assert wrong(lib.pe_surface_layout(desc)) == ""
    assert (desc.level[0].pitch, desc.total_bytes) == (8, 24)


# ---- handles, state, geometry, format ---------------------------------------------------------------------------------


@pytest.fixture
def table() -> Any:
    pointer = lib.pe_surface_table_new()
    yield pointer
    lib.pe_surface_table_free(pointer)


def test_handle_table(table: Any) -> None:
    desc = Texels("R32_UINT", 4).desc
    assert lib.pe_surface_table_set(table, 0, 1, desc) == -1
    assert lib.pe_surface_table_set(table, 0x100000, 1, desc) == -1
    for slot in (1, 5, 0xFFFFF):
        assert lib.pe_surface_table_set(table, slot, 7, desc) == 0
        assert lib.pe_surface_lookup(table, slot | 7 << 32).width == 4
        assert lib.pe_surface_lookup(table, slot).width == 4  # tag 0 is not checked
        assert lib.pe_surface_lookup(table, slot | 0xABC << 20 | 7 << 32).width == 4  # sampler bits are ignored
        assert not lib.pe_surface_lookup(table, slot | 8 << 32)
    for handle in (0, 2, 4, 6, 0x80000):
        assert not lib.pe_surface_lookup(table, handle)
    lib.pe_surface_table_clear(table, 5)
    assert not lib.pe_surface_lookup(table, 5 | 7 << 32)


def test_states() -> None:
    surface = Texels("R32_UINT", 4)
    how, where = access("3d"), coord(2)  # a wrong geometry and a misaligned coordinate: state comes first
    surface.desc.state = lib.PE_SURFACE_DISABLED
    assert resolve(surface.desc, how, where) == NONE
    surface.desc.state = lib.PE_SURFACE_INVALID
    assert resolve(surface.desc, how, where) == lib.PE_INVALID_SURFACE
    assert resolve(ffi.NULL, how, where) == lib.PE_INVALID_SURFACE
    surface.desc.state = lib.PE_SURFACE_UNBOUND
    assert resolve(surface.desc, how, where) == lib.PE_UNBOUND_SURFACE
    drop = context(invalid_header=lib.PE_HEADER_DROP)
    out = ffi.new("uint8_t **")
    assert lib.pe_su_resolve(drop, ffi.NULL, how, where, out) == lib.PE_SU_NONE
    assert drop.dropped == 1


@pytest.mark.parametrize("used", [*GEOMETRY, "any"])
@pytest.mark.parametrize("bound", GEOMETRY)
def test_geometry_match(bound: str, used: str) -> None:
    layers = {"cube": 6, "acube": 6}.get(bound, 1)
    surface = Texels("R32_UINT", 4, 4 if layers == 6 else 1, 1, layers, geometry=bound)
    fits = used in (bound, "any") or (used == "a2d" and layers == 6) or (used == "1d" and bound == "1d_buffer")
    assert resolve(surface.desc, access(used), coord(4)) == (4 if fits else lib.PE_GEOMETRY_MISMATCH)


def test_format_rules() -> None:
    single = lib.PE_FORMAT_SINGLE
    for name, size, fits in [("R32_UINT", 4, True), ("R8G8B8A8_UNORM", 4, False), ("R16_FLOAT", 2, True),
                             ("R16_UINT", 4, False), ("R32G32_UINT", 4, False)]:  # fmt: skip
        desc = Texels(name, 4).desc
        expected = 0 if fits else lib.PE_FORMAT_MISMATCH
        assert resolve(desc, access(size=size, mode="texel", format=single), coord()) == expected
    desc = Texels("R32_FLOAT", 4).desc
    how = access(format=lib.PE_FORMAT_INTEGER)
    assert resolve(desc, how, coord()) == 0
    assert resolve(desc, how, coord(), strict=1) == lib.PE_FORMAT_MISMATCH


# ---- worked examples -----------------------------------------------------------------------------------------------------


def test_load_example() -> None:
    surface = Texels("R8G8B8A8_UNORM", 60, 30, pitch=256)
    surface.memory[:] = np.arange(surface.total) % 251
    data = ffi.new("uint16_t[2]")
    assert lib.pe_su_load(context(), surface.desc, access(), coord(20, 3), data) == lib.PE_OK
    assert list(data) == [9251, 9765]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("R8G8B8A8_UNORM", "ff800040"), ("B8G8R8A8_UNORM", "0080ff40"), ("R16G16_UNORM", "ffff0080"),
        ("R32_FLOAT", "0000803f"), ("R16G16B16A16_FLOAT", "003c003800000034"), ("A8_UNORM", "40"),
    ],
)  # fmt: skip
def test_formatted_store_examples(name: str, expected: str) -> None:
    surface = Texels(name, 4, geometry="1d")
    values = ffi.new("uint32_t[4]", [struct.unpack("<I", struct.pack("<f", v))[0] for v in (1.0, 0.5, 0.0, 0.25)])
    assert lib.pe_su_store_fmt(context(), surface.desc, access("1d", mode="texel"), coord(0), values, 0xF) == lib.PE_OK
    assert bytes(surface.memory[: len(expected) // 2]).hex() == expected


@pytest.mark.parametrize(
    ("policy", "name", "count", "expected"),
    [
        (0, "R8G8B8A8_UINT", 1, "01000000"), (1, "R8G8B8A8_UINT", 1, "01777777"), (2, "R8G8B8A8_UINT", 1, "01cdcdcd"),
        (0, "R8G8B8A8_UINT", 2, "01020000"), (1, "B8G8R8A8_UINT", 2, "77020177"), (2, "B8G8R8A8_UINT", 2, "cd0201cd"),
        (0, "A8_UNORM", 2, "00"), (1, "A8_UNORM", 2, "77"), (1, "R16G16_UINT", 1, "01007777"),
    ],
)  # fmt: skip
def test_missing_components(policy: int, name: str, count: int, expected: str) -> None:
    surface = Texels(name, 4, geometry="1d")
    surface.memory[:] = 0x77
    values = ffi.new("uint32_t[4]", [1, 2, 3, 4])
    ctx = context(missing_component=policy)
    lib.pe_su_store_fmt(ctx, surface.desc, access("1d", mode="texel"), coord(0), values, (1 << count) - 1)
    assert bytes(surface.memory[: len(expected) // 2]).hex() == expected


def test_integer_components_from_floats() -> None:
    surface = Texels("R8G8B8A8_UINT", 4, geometry="1d")
    values = ffi.new("uint32_t[4]", [struct.unpack("<I", struct.pack("<f", v))[0] for v in (2.5, 300.0, -1.0, 3.5)])
    lib.pe_su_store_fmt(context(float_to_uint=1), surface.desc, access("1d", mode="texel"), coord(0), values, 0xF)
    assert bytes(surface.memory[:4]) == bytes([2, 255, 0, 4])


SURED_EXAMPLES = [
    # scaled, 64 bits, clamp, x, y: byte that changes, or what happens
    ("byte", 4, "zero", 8, 1, 72),
    ("scaled", 4, "zero", 8, 1, 96),
    ("scaled", 8, "zero", 7, 0, 56),
    ("scaled", 8, "zero", 8, 0, NONE),
    ("byte", 4, "clamp", 64, -3, 60),
    ("byte", 8, "clamp", 64, 9, 248),
    ("byte", 4, "trap", -4, 0, TRAP),
    ("byte", 4, "zero", 6, 0, MISALIGNED),
]


@pytest.mark.parametrize(("mode", "size", "clamp", "x", "y", "expected"), SURED_EXAMPLES)
def test_reduction_examples(mode: str, size: int, clamp: str, x: int, y: int, expected: int | str) -> None:
    surface = Texels("R32_UINT", 16, 4, pitch=64)
    type_ = lib.PE_TYPE_U32 if size == 4 else lib.PE_TYPE_U64
    five = (5).to_bytes(8, "little")
    lib.pe_su_atomic(context(), surface.desc, access(size=size, clamp=clamp, mode=mode), coord(x, y), lib.PE_ATOM_ADD,
                     type_, 0, five, b"", ffi.NULL)  # fmt: skip
    assert list(np.flatnonzero(surface.memory)) == ([expected] if isinstance(expected, int) else [])
    if isinstance(expected, int):
        assert surface.memory[expected] == 5


@pytest.mark.parametrize(("name", "expected"), [("R32_SINT", 0xFFFFFFFF), ("R32_UINT", 3), ("R32_FLOAT", 3)])
def test_untyped_minimum_takes_its_sign_from_the_format(name: str, expected: int) -> None:
    surface = Texels(name, 4, geometry="1d")
    words = surface.memory.view(np.uint32)
    words[:] = [5, 0xFFFFFFFF, 7, 0]
    ctx = context()
    how = access("1d", mode="scaled")
    update = (ctx, surface.desc, how, coord(1), lib.PE_ATOM_UMIN, lib.PE_TYPE_B32, 0, (3).to_bytes(4, "little"), b"")
    assert lib.pe_su_atomic(*update, ffi.NULL) == lib.PE_OK
    assert words[1] == expected
    assert ctx.format_mismatches == (name == "R32_FLOAT")
    ctx.policy.strict = 1
    strict = lib.PE_FORMAT_MISMATCH if name == "R32_FLOAT" else lib.PE_OK
    assert lib.pe_su_atomic(*update, ffi.NULL) == strict


def test_one_buffer_four_front_ends() -> None:
    """Texel (2, 1) is byte 72 for byte, scaled and texel coordinates and for a flat address."""
    surface = Texels("R32_UINT", 16, 4, pitch=64)
    one, ctx = (1).to_bytes(4, "little"), context()
    for mode, x in (("byte", 8), ("scaled", 2), ("texel", 2)):
        how = access("2d", 4, "zero", mode)
        lib.pe_su_atomic(ctx, surface.desc, how, coord(x, 1), lib.PE_ATOM_ADD, lib.PE_TYPE_U32, 0, one, b"", ffi.NULL)
    flat = ffi.cast("void *", surface.memory.ctypes.data + 72)
    lib.pe_atom_update(flat, lib.PE_ATOM_ADD, lib.PE_TYPE_U32, 0, one, b"", ffi.NULL, 1)
    assert surface.memory[72] == 4
    assert np.count_nonzero(surface.memory) == 1


# ---- suq ---------------------------------------------------------------------------------------------------------------


def queries(desc: Any, **policy: int) -> list[int]:
    return [lib.pe_su_query(context(**policy), desc, which) for which in range(lib.PE_SUQ_COUNT)]


def test_queries() -> None:
    assert queries(Texels("R8G8B8A8_UNORM", 7, 5).desc) == [7, 5, 0, 0x10D2, 0x10B5, 0, 1]
    assert queries(Texels("B8G8R8A8_UNORM", 7, 5).desc, absent_dim=1) == [7, 5, 1, 0x10D2, 0x10B6, 0, 1]
    assert queries(Texels("R16_FLOAT", 7, geometry="1d", layout="linear").desc) == [7, 0, 0, 0x10DD, 0x10B0, 0, 1]
    deep = Texels("R32G32_FLOAT", 7, 5, 3, geometry="3d", layout="block_linear")
    assert queries(deep.desc) == [7, 5, 3, 0x10DE, 0x10B2, 0, 0]
    assert queries(Texels("A8_UNORM", 7, 7, 1, 6, geometry="cube").desc) == [7, 7, 0, 0x10D2, 0x10B1, 6, 1]
    assert queries(Texels("R32_SINT", 7, 1, 1, 2, geometry="a1d", enum_family=lib.PE_ENUM_CUDA).desc) == [
        7, 0, 0, 0x0A, 1, 2, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "opencl", "cuda"),
    [
        ("R8_SNORM", 0x10D0, 0x08), ("R16_SNORM", 0x10D1, 0x09), ("R8_UNORM", 0x10D2, 0x01), ("R16_UNORM", 0x10D3, 0x02),
        ("R8_SINT", 0x10D7, 0x08), ("R16_SINT", 0x10D8, 0x09), ("R32_SINT", 0x10D9, 0x0A), ("R8_UINT", 0x10DA, 0x01),
        ("R16_UINT", 0x10DB, 0x02), ("R32_UINT", 0x10DC, 0x03), ("R16_FLOAT", 0x10DD, 0x10), ("R32_FLOAT", 0x10DE, 0x20),
    ],
)  # fmt: skip
def test_channel_types(name: str, opencl: int, cuda: int) -> None:
    desc = Texels(name, 4).desc
    assert lib.pe_su_query(context(), desc, lib.PE_SUQ_CHANNEL_DATA_TYPE) == opencl
    desc.enum_family = lib.PE_ENUM_CUDA
    assert lib.pe_su_query(context(), desc, lib.PE_SUQ_CHANNEL_DATA_TYPE) == cuda


def test_query_overrides() -> None:
    desc = Texels("R32_UINT", 4, 4).desc
    desc.suq_mask = 1 << lib.PE_SUQ_WIDTH | 1 << lib.PE_SUQ_ARRAY_SIZE
    desc.suq_value[lib.PE_SUQ_WIDTH], desc.suq_value[lib.PE_SUQ_ARRAY_SIZE] = 99, 3
    assert queries(desc) == [99, 4, 0, 0x10DC, 0x10B0, 3, 1]
    desc.state = lib.PE_SURFACE_UNBOUND
    assert queries(desc) == [99, 0, 0, 0, 0, 3, 0]


# ---- warps -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def caller() -> Any:
    arena = lib.pe_arena_create(1 << 24)
    yield WarpCaller(arena)
    lib.pe_arena_destroy(arena)


def surface_site(kind: int, geometry: str, clamp: str, element: int, count: int, op: int = 0, type_: int = 0) -> Any:
    return ffi.new("pe_surface_site *", [77, kind, GEOMETRY[geometry], CLAMP[clamp], element, count, op, type_, 0])


KINDS = {"suld": lib.PE_SULD_B, "sust": lib.PE_SUST_B, "sust_p": lib.PE_SUST_P, "sured": lib.PE_SURED_B, "sured_p": lib.PE_SURED_P}
MODES = {"suld": "byte", "sust": "byte", "sust_p": "texel", "sured": "byte", "sured_p": "scaled"}


class WarpCase:
    """One surface instruction of a warp, random, with the model's idea of its effect."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.model, self.real = random_model(rng)
        self.kind = str(rng.choice(list(KINDS)))
        self.clamp = str(rng.choice(list(CLAMP)))
        self.element, self.count = int(rng.choice([1, 2, 4, 8])), int(rng.choice([1, 2, 4]))
        if self.kind == "sust_p":
            self.element = 4
        elif self.kind in ("sured", "sured_p"):
            self.element, self.count = int(rng.choice([4, 8])), 1
        elif self.element * self.count > 16:
            self.count = 2
        self.size = self.element * self.count
        self.mask = ALL_LANES if rng.random() < 0.5 else int(rng.integers(1, 1 << 32))
        self.real.memory[:] = rng.integers(0, 256, self.real.total)
        self.data = rng.integers(0, 256, (LANES, self.size)).astype(np.uint8)
        self.coordinates = self._coordinates(float(rng.choice([0.0, 0.05, 0.4])))

    def _coordinates(self, wild: float) -> dict[str, Any]:
        rng, model = self.rng, self.model
        step = {"texel": 1, "scaled": 1, "byte": self.size}[MODES[self.kind]]
        units = model.width if self.kind == "sust_p" else max(1, model.width * model.elem // self.size)
        xs = rng.integers(0, units, LANES)
        if rng.random() < 0.4:
            xs = rng.integers(0, units) + np.arange(LANES)
        found = {"x": xs * step}
        rows = rng.random() < 0.5
        for name, extent in (("y", model.height), ("z", model.depth), ("layer", model.layers)):
            found[name] = np.full(LANES, rng.integers(0, extent)) if rows else rng.integers(0, extent, LANES)
        for name, values in found.items():
            bad = rng.random(LANES) < wild
            values[bad] = rng.choice([-1, -4, 3, 1 << 20, 2**31 - 1, -(2**31)], LANES)[bad] if name != "layer" else 9999
        return found

    def where(self, lane: int) -> list[int]:
        x, y, z, layer = (int(self.coordinates[name][lane]) for name in ("x", "y", "z", "layer"))
        return [x, y, z, layer % 2**32]

    def expect(self) -> tuple[Any, Any, tuple[int, str] | None]:
        """Memory, data and the first fault after the instruction, lane by lane."""
        memory, data = self.real.memory.copy(), self.data.copy()
        for lane in range(LANES):
            if not self.mask >> lane & 1:
                continue
            at = self.model.resolve(MODES[self.kind], self.size, *self.where(lane), self.clamp)
            if at in (TRAP, MISALIGNED):
                return memory, data, (lane, str(at))
            if self.kind == "suld":
                data[lane] = 0 if at == NONE else memory[at : at + self.size]
            elif at != NONE:
                self._update(memory, int(at), data[lane])
        return memory, data, None

    def _update(self, memory: Any, at: int, lane: Any) -> None:
        if self.kind == "sust":
            memory[at : at + self.size] = lane
        elif self.kind == "sust_p":
            memory[at : at + self.model.elem] = list(self._formatted(lane.view(np.uint32)))
        else:
            old = int.from_bytes(bytes(memory[at : at + self.size]), "little")
            new = (old + int.from_bytes(bytes(lane), "little")) % (1 << 8 * self.size)
            memory[at : at + self.size] = list(new.to_bytes(self.size, "little"))

    def _formatted(self, values: Any) -> bytes:
        components = max(1, self.model.elem // 4)
        bits = 8 * self.model.elem // components
        given = [min(int(v), (1 << bits) - 1) for v in values[:components]] + [0] * components
        return b"".join(v.to_bytes(bits // 8, "little") for v in given[:components])

    def run(self, caller: WarpCaller, table: Any) -> tuple[Any, Any]:
        assert lib.pe_surface_table_set(table, 3, 5, self.real.desc) == 0
        type_ = lib.PE_TYPE_U32 if self.element == 4 else lib.PE_TYPE_U64
        geometry = self.model.geometry
        site = surface_site(KINDS[self.kind], geometry, self.clamp, self.element, self.count, lib.PE_ATOM_ADD, type_)
        handles = np.full(LANES, 3 | 5 << 32, np.uint64)
        lanes = {name: int32(values) for name, values in self.coordinates.items()}
        data = self.data.copy()
        outcome = caller.call(
            "pe_surface", site, self.mask, handles, lanes["x"], lanes["y"], lanes["z"], lanes["layer"], data,
            surfaces=context(table), workers=int(self.rng.integers(1, 3)),
        )  # fmt: skip
        return data, outcome.fault


@pytest.mark.parametrize("seed", range(300))
def test_warp_access_follows_the_model(seed: int, caller: WarpCaller, table: Any) -> None:
    case = WarpCase(seed)
    memory, data, stop = case.expect()
    got, fault = case.run(caller, table)
    assert (case.real.memory == memory).all()
    assert case.real.guards_intact
    if stop is None:
        assert fault is None
        assert (got == data).all()
        return
    lane, what = stop
    assert fault is not None
    assert (fault.kind, fault.lane) == (lib.PE_SURFACE_TRAP if what == TRAP else lib.PE_MISALIGNED, lane)
    assert (fault.slot, fault.pos) == (3, 77)
    assert fault.coordinates == case.where(lane)
    assert fault.size == (case.model.elem if case.kind == "sust_p" else case.size)


def test_warp_with_several_surfaces(caller: WarpCaller, table: Any) -> None:
    """Lanes may hold different handles; NULL stands for coordinates that the geometry lacks."""
    surfaces = [Texels("R32_UINT", 64, geometry="1d") for _ in range(3)]
    for index, surface in enumerate(surfaces):
        surface.memory.view(np.uint32)[:] = np.arange(64) + 1000 * index
        lib.pe_surface_table_set(table, 8 * index + 1, 9, surface.desc)
    slots = np.arange(LANES) * 7 % 3
    handles = (8 * slots + 1 + (9 << 32)).astype(np.uint64)
    data = np.zeros(LANES, np.uint32)
    site = surface_site(lib.PE_SULD_B, "1d", "trap", 4, 1)
    x = int32(np.arange(LANES) * 4)
    outcome = caller.call("pe_surface", site, ALL_LANES, handles, x, None, None, None, data, surfaces=context(table))
    assert outcome.fault is None
    assert (data == np.arange(LANES) + 1000 * slots).all()


@pytest.mark.parametrize(
    ("handle", "kind"),
    [(0, "INVALID_SURFACE"), (2, "INVALID_SURFACE"), (1 | 6 << 32, "INVALID_SURFACE"), (4, "UNBOUND_SURFACE"), (5, "GEOMETRY_MISMATCH")],
)  # fmt: skip
def test_warp_bad_handle(handle: int, kind: str, caller: WarpCaller, table: Any) -> None:
    plane, row = Texels("R32_UINT", 64, 4), Texels("R32_UINT", 64, geometry="1d")
    lib.pe_surface_table_set(table, 1, 5, plane.desc)
    lib.pe_surface_table_set(table, 4, 5, ffi.new("pe_surface_desc *", {"state": lib.PE_SURFACE_UNBOUND}))
    lib.pe_surface_table_set(table, 5, 5, row.desc)
    handles = np.full(LANES, 1 | 5 << 32, np.uint64)
    handles[9:] = handle
    data = np.full(LANES, 3, np.uint32)
    site = surface_site(lib.PE_SUST_B, "2d", "zero", 4, 1)
    x, y = int32(np.arange(LANES) * 4), int32(np.zeros(LANES))
    outcome = caller.call("pe_surface", site, 0xFFFFFFF0, handles, x, y, None, None, data, surfaces=context(table))
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.lane) == (getattr(lib, f"PE_{kind}"), 9)
    assert list(np.flatnonzero(plane.memory.view(np.uint32))) == [4, 5, 6, 7, 8]  # the lanes before it


def test_launch_without_surfaces(caller: WarpCaller) -> None:
    site = surface_site(lib.PE_SULD_B, "1d", "trap", 4, 1)
    zero = np.zeros(LANES, np.uint64)
    outcome = caller.call("pe_surface", site, 1, zero, int32(zero), None, None, None, np.zeros(LANES, np.uint32))
    assert outcome.fault is not None and outcome.fault.kind == lib.PE_INVALID_SURFACE


def test_suq_and_is_surface(caller: WarpCaller, table: Any) -> None:
    lib.pe_surface_table_set(table, 1, 5, Texels("R32_UINT", 64, 4).desc)
    lib.pe_surface_table_set(table, 2, 5, ffi.new("pe_surface_desc *", {"state": lib.PE_SURFACE_UNBOUND}))
    handles = np.full(LANES, 1 | 5 << 32, np.uint64)
    result = np.full(LANES, 7, np.uint32)
    ctx = context(table)
    assert caller.call("pe_suq", 77, lib.PE_SUQ_WIDTH, 0xFF, handles, result, surfaces=ctx).fault is None
    assert list(result) == [64] * 8 + [7] * 24
    handles[1::4], handles[2::4], handles[3::4] = 2 | 5 << 32, 1 | 6 << 32, 0
    assert caller.call("pe_is_surface", 0x0FFFFFFF, handles, surfaces=ctx).result == 0x01111111
    fault = caller.call("pe_suq", 77, lib.PE_SUQ_WIDTH, ALL_LANES, handles, result, surfaces=ctx).fault
    assert fault is not None and (fault.kind, fault.lane, fault.slot) == (lib.PE_INVALID_SURFACE, 2, 1)


@pytest.mark.parametrize("policy", ["mask", "edge", "layer16", "drop"])
def test_warp_policies(policy: str, caller: WarpCaller, table: Any) -> None:
    surface = Texels("R8_UINT", 10, 1, 1, 3, geometry="a1d", pitch=16)
    surface.memory[:] = np.arange(surface.total)
    lib.pe_surface_table_set(table, 1, 5, surface.desc)
    ctx = context(table, **{"mask": {"align": 1}, "edge": {"partial_edge": 1}, "layer16": {"layer_16bit": 1},
                            "drop": {"invalid_header": 1}}[policy])  # fmt: skip
    handles = np.full(LANES, 2 if policy == "drop" else 1, np.uint64)
    x = {"mask": 6, "edge": 8, "layer16": 4, "drop": 0}[policy]
    layer = 65537 if policy == "layer16" else 1
    data = np.full(LANES, 0xEEEEEEEE, np.uint32)
    site = surface_site(lib.PE_SULD_B, "a1d", "trap", 4, 1)
    outcome = caller.call("pe_surface", site, 1, handles, int32(np.full(LANES, x)), None, None,
                          int32(np.full(LANES, layer)), data, surfaces=ctx)  # fmt: skip
    assert outcome.fault is None
    start = {"mask": 4, "edge": 8, "layer16": 4}.get(policy)
    word = 0 if start is None else int.from_bytes(bytes(range(16 + start, 20 + start)), "little")
    assert list(data[:2]) == [word, 0xEEEEEEEE]
    assert ctx.dropped == (policy == "drop")


def test_concurrent_reductions(caller: WarpCaller, table: Any) -> None:
    """Two million updates of few texels, from two launches at once."""
    surface = Texels("R32_UINT", 4, geometry="1d")
    lib.pe_surface_table_set(table, 1, 5, surface.desc)
    site = surface_site(lib.PE_SURED_B, "1d", "trap", 4, 1, lib.PE_ATOM_ADD, lib.PE_TYPE_U32)
    handles, x = np.full(LANES, 1, np.uint64), int32(np.arange(LANES) % 4 * 4)
    data, ctas = np.full(LANES, 3, np.uint32), 32768
    arguments = ("pe_surface", site, ALL_LANES, handles, x, None, None, None, data)
    started = [caller.start(*arguments, surfaces=context(table), ctas=ctas, workers=2) for _ in range(2)]
    for one in started:
        assert caller.finish(one).fault is None
    assert list(surface.memory.view(np.uint32)) == [3 * 8 * ctas * 2 % 2**32] * 4

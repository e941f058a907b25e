"""The surface engine's C entry points against the spec's vectors and a second model (surface_model)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import ffi, lib
from tests.support.kernel_tools import kernel
from tests.support.places import SPEC
from tests.support.surface_model import MISALIGNED, NONE, TRAP
from tests.surfaces.surface_texels import (
    BY_BYTES,
    CLAMP,
    COORD,
    Texels,
    access,
    coord,
    describe,
    random_model,
    resolve,
    wrong,
)


def rows(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open(newline="") as file:
        return list(csv.DictReader(file))


def lenient(row: dict[str, str], name: str) -> int:
    return int(row[name] or 0)


# ---- vectors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", rows("vectors_addressing.csv"), ids=lambda row: "-".join(list(row.values())[:16]))
def test_addressing_vector(row: dict[str, str]) -> None:
    layout = {"pitch": "pitch", "blocklinear": "block_linear"}[row["layout"]]
    extents = [max(1, lenient(row, name)) for name in ("width", "height", "depth", "layers")]
    desc = describe(
        BY_BYTES[int(row["elem_bytes"])],
        *extents,
        geometry=row["geom"],
        layout=layout,
        pitch=lenient(row, "pitch"),
        block_h_log2=lenient(row, "req_block_h_log2"),
        block_d_log2=lenient(row, "req_block_d_log2"),
    )
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


FORMAT_ROWS = rows("vectors_format_store.csv")


STORE = kernel(
    """mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; ld.param.u64 %rd2, [values]; add.u64 %rd2, %rd2, %rd1;
    ld.global.b32 %r2, [%rd2]; ld.param.u64 %rd3, [image]; sust.p.1d.b32.trap [%rd3, {%r1}], %r2; ret;""",
    ".param .u64 values, .param .u64 image",
)


@pytest.mark.parametrize(("kind", "bits"), sorted({(row["format_kind"], row["component_bits"]) for row in FORMAT_ROWS}))
def test_format_store_vectors(kind: str, bits: str) -> None:
    """Each thread stores one register."""
    chosen = [row for row in FORMAT_ROWS if (row["format_kind"], row["component_bits"]) == (kind, bits)]
    with ptxemu.Device("16 MiB") as device:
        surface = device.surface((len(chosen),), format=f"R{bits}_{kind}", geometry="1d")
        values = np.array([int(row["source_register_bits"], 16) for row in chosen], np.uint32)
        ptxemu.loads(STORE, device=device)["k"][1, len(chosen)](values, surface)
        stored = surface.copy_to_host().view(f"u{int(bits) // 8}").ravel()
    assert stored.tolist() == [int(row["stored_component_bits"], 16) for row in chosen]


# ---- layout --------------------------------------------------------------------------------------------------------


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
            mode,
            n,
            x,
            y,
            z,
            layer,
            clamp,
            "mask" if mask else "fault",
            level,
            "allow" if edge else "reject",
            16 if bits else 32,
        )
        if level == model.n_levels and clamp == "clamp" and expected != MISALIGNED:
            expected = NONE
        got = resolve(
            real.desc,
            access(model.geometry, n, clamp, mode),
            coord(x, y, z, layer, level),
            align=int(mask),
            partial_edge=int(edge),
            layer_16bit=int(bits),
        )
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

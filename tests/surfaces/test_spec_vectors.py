"""All test vectors through programs of PTX, SASS and vISA.

The vectors also run against the C entry points (``test_surfaces_vectors_c``, ``test_atomics_c``); here they pass through an
instruction of each instruction set that has one.  What none of them has is counted at the end.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import groupby

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.sass.memory import BIAS
from tests.support import sass_harness, spec_vectors
from tests.support.spec_vectors import Row, addressed, atomics, column, extents, rows, shape
from tests.support.surface_model import MISALIGNED, NONE, TRAP, ModelSurface
from tests.support.visa_harness import device as visa_device
from tests.support.visa_harness import run as run_visa

TARGET = ".version 8.8\n.target sm_90\n.address_size 64\n"
GROUPS = atomics()


@cache
def device() -> ptxemu.Device:
    return sass_harness.device()


@cache
def ptx(text: str, align: str = "fault") -> ptxemu.Module:
    return ptxemu.loads(text, device=device(), options={"align": align}, opt=0)


# ---------------------------------------------------------------- atomic operations


def entry(name: str, params: str, body: str) -> str:
    """A kernel in which %i is the thread's number, and ``params`` are arrays with the address of the thread's element.

    Each is written ``name:bytes``.
    """
    items = [item.split(":") for item in params.split()]
    loads = [f"ld.param.u64 %{n}, [{n}]; mad.wide.u32 %{n}, %i, {size}, %{n};" for n, size in items]
    listed = ", ".join(f".param .u64 {n}" for n, _ in items)
    return f"""{TARGET}.entry {name}({listed}) {{
    .reg .b16 %h<9>; .reg .b32 %r<9>, %i, %x, %y, %z, %l; .reg .b64 %d<9>{"".join(f", %{n}" for n, _ in items)};
    .shared .align 8 .b8 own[8192];
    mov.u32 %i, %tid.x;
    {" ".join(loads)}
    {body}
    ret; }}"""


def atomic_text(front: str, instruction: str, bits: int) -> str:
    """Lane i: the operation on element i with a[i] (and b[i]); what atom returns goes to old[i]."""
    letter = {16: "h", 32: "r", 64: "d"}[bits]
    size = bits // 8
    body = f"ld.global.b{bits} %{letter}1, [%a]; ld.global.b{bits} %{letter}2, [%b];"
    more = f", %{letter}2" if instruction.startswith("cas") else ""
    if front == "red":
        body += f"red.global.{instruction} [%m], %{letter}1;"
    elif front == "atom":
        body += f"atom.global.{instruction} %{letter}3, [%m], %{letter}1{more}; st.global.b{bits} [%o], %{letter}3;"
    elif front == "shared":
        body += f"""mul.lo.u32 %r7, %i, {size}; mov.u32 %r8, own; add.u32 %r7, %r7, %r8;
        ld.global.b{bits} %{letter}4, [%m]; st.shared.b{bits} [%r7], %{letter}4;
        atom.shared.{instruction} %{letter}3, [%r7], %{letter}1; st.global.b{bits} [%o], %{letter}3;
        ld.shared.b{bits} %{letter}4, [%r7]; st.global.b{bits} [%m], %{letter}4;"""
    else:
        op, kind = instruction.split(".")
        body += f"ld.global.u64 %d5, [%s]; mul.lo.u32 %x, %i, {size}; sured.b.{op}.1d.{kind}.trap [%d5, {{%x}}], %{letter}1;"
    return entry("k", f"m:{size} a:{size} b:{size} o:{size} s:8", body)


FRONTS = {"red": spec_vectors.PTX, "atom": spec_vectors.PTX | spec_vectors.PTX_ATOM, "shared": spec_vectors.PTX_SHARED,
          "sured": spec_vectors.PTX_SURED}  # fmt: skip


def same(bits: list[int], expected: list[int], double: bool) -> bool:
    """Equal; sums of f64 may be any NaN."""
    if not double:
        return bits == expected
    x, y = (np.array(values, np.uint64).view("f8") for values in (bits, expected))
    return bool(((x.view("u8") == y.view("u8")) | (np.isnan(x) & np.isnan(y))).all())


@pytest.mark.parametrize("front", FRONTS)
def test_atomics_in_ptx(front):
    """Every operation and width of red, atom and sured: memory and, from atom, what is returned."""
    for (name, bits), instruction in FRONTS[front].items():
        found = GROUPS[name, bits]
        kind = np.dtype(f"u{bits // 8}")
        old, a, b, new, returned = (np.array(column(found, key), kind) for key in ("old", "src0", "src1", "new", "returned"))
        result, count = np.zeros_like(old), len(old)
        surface = device().surface(old.view("u4").copy(), format="R32_UINT", geometry="1d") if front == "sured" else None
        handles = np.full(count, surface.handle if surface else 0, np.uint64)
        memory = old.copy()
        ptx(atomic_text(front, instruction, bits))["k"][1, count](memory, a, b, result, handles)
        after = surface.copy_to_host().view(kind) if surface else memory
        double = instruction == "add.f64"
        assert same(after.tolist(), new.tolist(), double), (instruction, found)
        if front in ("atom", "shared"):
            assert result.tolist() == returned.tolist(), (instruction, found)


@pytest.mark.parametrize("front", ["SURED", "RED"])
def test_atomics_in_sass(front):
    """One thread for each vector; halves come in pairs."""
    table = spec_vectors.SASS_SURED if front == "SURED" else spec_vectors.SASS_RED
    for (name, bits), words in table.items():
        found = GROUPS[name, bits]
        pair = 0x10001 if bits == 16 else 1
        kind = np.dtype("u8" if bits == 64 else "u4")
        old, value, new = (np.array([bits_ * pair for bits_ in column(found, key)], kind) for key in ("old", "src0", "new"))
        low, high = ((value.astype("u8") >> np.uint64(shift) & np.uint64(0xFFFFFFFF)).tolist() for shift in (0, 32))
        places = np.arange(len(old))
        registers = {"R8": low, "R9": high}
        if front == "SURED":
            surface = device().surface(old.view("u4").copy(), format="R32_UINT", geometry="1d")
            sass_harness.run(f"SURED.D.1D.{words}.TRAP [R4], R8, 0x52", {"R4": places, **registers}, surface)
            after = surface.copy_to_host().view(kind)
        else:
            buffer = device().to_device(old)
            start = buffer.address - device().arena.base + BIAS + places * kind.itemsize
            sass_harness.run(f"RED.E.{words} [R2], R8", {"R2": start & 0xFFFFFFFF, "R3": start >> 32, **registers})
            after = buffer.copy_to_host()
        assert same(after.tolist(), new.tolist(), words == "ADD.F64.RN"), (words, found)


OPERANDS = {"inc": "V0 V0", "dec": "V0 V0", "predec": "V0 V0", "cmpxchg": "A.0 B.0", "fcmpwr": "A.0 B.0"}


def test_atomics_in_visa():
    """Eight channels to a thread; what memory holds and what is returned."""
    for (name, bits), words in spec_vectors.VISA.items():
        found = GROUPS[name, bits]
        padding = -len(found) % 8
        columns = {key: column(found, key) + [0] * padding for key in ("old", "src0", "src1", "new", "returned")}
        kind = np.dtype(f"u{bits // 8}")
        surface = visa_device().surface(np.array(columns["old"], kind), format=f"R{bits}_UINT", geometry="1d")
        word = words.split(".")[0]
        operands = OPERANDS.get(word, "A.0 V0")
        places = np.arange(len(columns["old"]))
        places[len(found) :] = -1
        values = {"U": places, "A": columns["src0"], "B": columns["src1"], "D": np.zeros(len(places))}
        files = {key: np.array(value, np.int64).reshape(-1, 8) for key, value in values.items()}
        text = f"TYPED_ATOMIC.{words.upper()} (M1, 8) T6 U.0 V0 V0 V0 {operands} D.0"
        got = run_visa(text, files, surface, ["D"])["D"]
        assert surface.copy_to_host()[: len(found)].tolist() == columns["new"][: len(found)], (words, found)
        assert got.ravel()[: len(found)].tolist() == columns["returned"][: len(found)], (words, found)


def test_every_atomic_vector_has_an_instruction():
    """All 222 vectors but the seven of NOWHERE pass through programs; how many through which."""
    fronts = {"ptx": {**spec_vectors.PTX, **spec_vectors.PTX_ATOM, **spec_vectors.PTX_SHARED}, "sass": spec_vectors.SASS_RED,
              "visa": spec_vectors.VISA}  # fmt: skip
    count = {name: sum(len(GROUPS[group]) for group in table) for name, table in fronts.items()}
    expressed = {group for table in fronts.values() for group in table}
    assert set(GROUPS) - expressed == set(spec_vectors.NOWHERE)
    assert sum(len(GROUPS[group]) for group in spec_vectors.NOWHERE) == 7
    assert sum(map(len, GROUPS.values())) == 222
    assert count == {"ptx": 111, "sass": 93, "visa": 129}


# ---------------------------------------------------------------- surfaces in PTX

VALUE = bytes(range(1, 17))
KINDS = {1: "b8", 2: "b16", 4: "b32", 8: "b64", 16: "v4.b32"}
WORDS = {1: "%h1", 2: "%h1", 4: "%r1", 8: "%d1", 16: "{%r1, %r2, %r3, %r4}"}
LOADS = {size: f"ld.global.{kind} {WORDS[size]}, [%v];" for size, kind in KINDS.items()}
STORES = {size: f"st.global.{kind} [%v], {WORDS[size]};" for size, kind in KINDS.items()}


def surface_text(op: str, geometry: str, size: int, clamp: str) -> str:
    """Lane i accesses its own surface at its own place; its 16 bytes of v are stored, added, or loaded."""
    place = f"[%d9, {spec_vectors.COORDINATES[geometry]}]"
    kind, words = KINDS[size], WORDS[size]
    body = {
        "suld": f"suld.b.{geometry}.{kind}.{clamp} {words}, {place}; {STORES[size]}",
        "sust": f"{LOADS[size]} sust.b.{geometry}.{kind}.{clamp} {place}, {words};",
        "sured.b": f"{LOADS[size]} sured.b.add.{geometry}.u{8 * size}.{clamp} {place}, {words};",
        "sured.p": f"{LOADS[size]} sured.p.max.{geometry}.b{8 * size}.{clamp} {place}, {words};",
        "sust.p": f"ld.global.v4.b32 {WORDS[16]}, [%v]; sust.p.{geometry}.v4.b32.{clamp} {place}, {WORDS[16]};",
    }[op]  # fmt: skip
    loads = " ".join(f"ld.global.u32 %{axis}, [%p{axis}];" for axis in "xyzl")
    text = entry("k", "s:8 px:4 py:4 pz:4 pl:4 v:16", f"ld.global.u64 %d9, [%s]; {loads} {body}")
    return text.replace("%d<9>", "%d<10>")


def launch_surfaces(text: str, surfaces, places, values, align: str = "fault") -> np.ndarray:
    """A lane for each surface; the 16 bytes of each lane afterwards."""
    handles = np.array([surface.handle for surface in surfaces], np.uint64)
    axes = (np.array(places, np.int64) & 0xFFFFFFFF).astype(np.uint32).T
    data = np.array([list(value) for value in values], np.uint8)
    ptx(text, align)["k"][1, len(surfaces)](handles, *(np.ascontiguousarray(axis) for axis in axes), data)
    return data


BOUNDS = rows("bounds")


def bounds_expectation(row: Row) -> int | str:
    if row["outcome"] != "ok":
        return {"trap": TRAP, "misaligned": MISALIGNED, "zero_or_drop": NONE}[row["outcome"]]
    model = ModelSurface(row["geom"], 1, *extents(row, "width_bytes"))
    return model.offset(*(int(row[name]) for name in ("eff_x_byte", "eff_y", "eff_z", "eff_layer")))


def bounds_surface(row: Row):
    return device().surface(shape(row["geom"], *extents(row, "width_bytes")), format="R8_UINT", geometry=row["geom"])


def bounds_ops(row: Row) -> list[str]:
    if row["x_mode"] != "byte":
        return ["sured.p"]
    reduces = row["access_bytes"] in ("4", "8") and row["geom"] in ("1d", "2d", "3d")
    return ["suld", "sust", "sured.b"] if reduces else ["suld", "sust"]


def bounds_groups() -> dict[tuple[str, ...], list[Row]]:
    """Rows by kernel and policy; those that fault come one by one."""
    found = defaultdict(list)
    for number, row in enumerate(BOUNDS):
        if not spec_vectors.ptx_accepts(row):
            continue
        alone = str(number) if row["outcome"] in ("trap", "misaligned") else ""
        for op in bounds_ops(row):
            found[op, row["geom"], row["access_bytes"], row["clamp"], row["align_policy"], alone].append(row)
    return found


def test_bounds_in_ptx():
    """Every vector: loads get the bytes at the place or zeros, stores and reductions write there and nowhere else."""
    for (op, geometry, size, clamp, align, alone), group in bounds_groups().items():
        surfaces = [bounds_surface(row) for row in group]
        places = [[int(row[name]) for name in ("x", "y", "z", "layer")] for row in group]
        before = []
        for surface in surfaces:
            memory = sass_harness.memory(surface)
            memory[:] = np.arange(len(memory)) % 251 + 1 if op == "suld" else 0
            before.append(memory.copy())
        text, number = surface_text(op, geometry, int(size), clamp), int(size)
        values = [bytes(16) if op == "suld" else VALUE] * len(group)
        if alone:
            wanted = "misaligned address" if group[0]["outcome"] == "misaligned" else "surface access out of bounds"
            with pytest.raises(ptxemu.Fault, match=wanted):
                launch_surfaces(text, surfaces, places, values, align)
            assert (sass_harness.memory(surfaces[0]) == before[0]).all()
            continue
        loaded = launch_surfaces(text, surfaces, places, values, align)
        for row, surface, start, lane in zip(group, surfaces, before, loaded, strict=True):
            at = bounds_expectation(row)
            if op == "suld":
                expected = bytes(start[at : at + number]) if isinstance(at, int) else bytes(number)
                assert bytes(lane[:number]) == expected, row
            elif isinstance(at, int):
                start[at : at + number] = list(VALUE[:number])
            assert (sass_harness.memory(surface) == start).all(), (op, row)


def test_bounds_in_visa():
    """Texels of 2 and 4 bytes; a thread for each vector, with the handle of its own surface."""
    chosen = [row for row in BOUNDS if spec_vectors.visa_accepts(row)]
    key = lambda row: (row["geom"], row["access_bytes"])  # noqa: E731
    for (geometry, size), found in groupby(sorted(chosen, key=key), key):
        group, number = list(found), int(size)
        axes = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": "xl", "a2d": "xyl"}[geometry]
        surfaces = []
        for row in group:
            width, *others = extents(row, "width_bytes")
            dims = shape(geometry, width // number, *others)
            surfaces.append(visa_device().surface(dims, format=f"R{8 * number}_UINT", geometry=geometry))
        places = {"x": [int(row["x"]) // (number if row["x_mode"] == "byte" else 1) for row in group]}
        places |= {axis: [int(row[name]) for row in group] for axis, name in (("y", "y"), ("z", "z"), ("l", "layer"))}
        values = {name: np.array(places[axis])[:, None].repeat(8, 1) for name, axis in zip("UVR", axes, strict=False)}
        handles = np.array([surface.handle for surface in surfaces], np.uint64)
        values["L"], values["H"] = ((handles >> np.uint64(shift))[:, None].repeat(8, 1) for shift in (0, 32))
        names = ["U.0", "V.0" if len(axes) > 1 else "V0", "R.0" if len(axes) > 2 else "V0"]
        lines = ["mov (M1, 1) W(0,0)<1> L(0,0)<0;1,0>", "mov (M1, 1) W(0,1)<1> H(0,0)<0;1,0>",
                 "movs (M1, 1) T252(0) Q(0,0)<0;1,0>",
                 f"TYPED_ATOMIC.XCHG{'.16' if number == 2 else ''} (M1, 1) T252 {' '.join(names)} V0 A.0 V0 D.0"]  # fmt: skip
        head = ".decl Q v_type=G type=uq num_elts=1\n.decl W v_type=G type=ud num_elts=2 alias=<Q, 0>"
        got = run_visa(lines, {**values, "A": 0x0201, "D": 9}, None, ["D"], head=head)["D"]
        for index, (row, surface) in enumerate(zip(group, surfaces, strict=True)):
            d = surface.surface.descriptor
            expected = np.zeros(surface.surface.total_bytes, np.uint8)
            if row["outcome"] == "ok":
                model = ModelSurface(geometry, number, d.width, d.height, d.depth, d.layers)
                at = model.offset(*(int(row[name]) for name in ("eff_x_byte", "eff_y", "eff_z", "eff_layer")))
                expected[at : at + 2] = (1, 2)
            assert (sass_harness.memory(surface) == expected).all(), row
            assert got[index, 0] == 0


def test_every_bounds_vector_has_an_instruction():
    """PTX takes all 396 rows; ``test_sass_surfaces`` runs those of SASS, which reads 16 bits of a layer."""
    assert len(BOUNDS) == 396 and all(map(spec_vectors.ptx_accepts, BOUNDS))
    assert sum(map(spec_vectors.sass_accepts, BOUNDS)) == 276
    assert sum(map(spec_vectors.visa_accepts, BOUNDS)) == 61


# ---------------------------------------------------------------- places

ADDRESSING = rows("addressing")
FORMATS = {1: "R8_UINT", 2: "R16_UINT", 4: "R32_UINT", 8: "R32G32_UINT", 16: "R32G32B32A32_UINT"}


def place_of(row: Row) -> list[int]:
    return [int(row[name] or 0) for name in ("x_elem", "y", "z", "layer")]


def test_places_in_ptx():
    """``sust.b`` of a whole texel writes the vector's bytes and no others; all vectors."""
    key = lambda row: (row["geom"], row["elem_bytes"])  # noqa: E731
    for (geometry, size), found in groupby(sorted(ADDRESSING, key=key), key):
        group, number = list(found), int(size)
        surfaces = [addressed(device(), row, FORMATS[number]) for row in group]
        places = [[x * number, y, z, layer] for x, y, z, layer in map(place_of, group)]
        launch_surfaces(surface_text("sust", geometry, number, "trap"), surfaces, places, [VALUE] * len(group))
        for row, surface in zip(group, surfaces, strict=True):
            expected = np.zeros(int(row["total_bytes"]), np.uint8)
            offset = int(row["byte_offset"])
            expected[offset : offset + number] = list(VALUE[:number])
            assert (sass_harness.memory(surface) == expected).all(), row


def test_places_in_sass():
    """A sum on the word around the texel's first byte changes that byte alone; all vectors."""
    dims = {"1d": "1D", "2d": "2D", "3d": "3D", "a1d": "1D_ARRAY", "a2d": "2D_ARRAY"}
    for row in ADDRESSING:
        size = int(row["elem_bytes"])
        surface = addressed(device(), row, FORMATS[size])
        x, y, z, layer = place_of(row)
        byte = x * size % 4
        axes = {"1d": (), "2d": (y,), "3d": (y, z), "a1d": (layer,), "a2d": (y, layer)}[row["geom"]]
        registers = {f"R{4 + place}": value for place, value in enumerate((x * size - byte, *axes))}
        text = f"SURED.D.BA.{dims[row['geom']]}.ADD.TRAP [R4], R8, 0x52"
        sass_harness.run(text, {**registers, "R8": 1 << 8 * byte}, surface)
        assert np.flatnonzero(sass_harness.memory(surface)).tolist() == [int(row["byte_offset"])], row


def test_places_in_visa():
    """TYPED_ATOMIC of the texels of 2 and 4 bytes: 40 of the 63 vectors; a typed atomic has no others."""
    chosen = [row for row in ADDRESSING if row["elem_bytes"] in ("2", "4")]
    assert (len(chosen), len(ADDRESSING)) == (40, 63)
    for row in chosen:
        size = int(row["elem_bytes"])
        surface = addressed(visa_device(), row, FORMATS[size])
        x, y, z, layer = place_of(row)
        axes = {"1d": (x,), "2d": (x, y), "3d": (x, y, z), "a1d": (x, layer), "a2d": (x, y, layer)}[row["geom"]]
        names = ["U.0", "V.0" if len(axes) > 1 else "V0", "R.0" if len(axes) > 2 else "V0"]
        text = f"TYPED_ATOMIC.ADD{'.16' if size == 2 else ''} (M1, 1) T6 {' '.join(names)} V0 A.0 V0 V0"
        run_visa(text, {**dict(zip("UVR", axes, strict=False)), "A": 0x0101}, surface)
        offset = int(row["byte_offset"])
        assert np.flatnonzero(sass_harness.memory(surface)).tolist() == [offset, offset + 1], row


# ---------------------------------------------------------------- formatted stores


def test_formatted_stores_in_ptx():
    """``sust.p`` of every vector to formats of one, two and four components; no other instruction set converts these."""
    found = rows("format_store")
    surfaces, values, expected = [], [], []
    for row in found:
        bits = int(row["component_bits"])
        for letters in ("R", "RG", "RGBA"):
            format = "".join(f"{letter}{bits}" for letter in letters) + f"_{row['format_kind']}"
            surfaces.append(device().surface((3,), format=format, geometry="1d"))
            values.append(int(row["source_register_bits"], 16).to_bytes(4, "little") * 4)
            texel = int(row["stored_component_bits"], 16).to_bytes(bits // 8, "little") * len(letters)
            expected.append(bytes(len(texel)) + texel + bytes(len(texel)))
    assert len(found) == 258
    text = surface_text("sust.p", "1d", 4, "trap")
    for start in range(0, len(surfaces), 512):
        part = surfaces[start : start + 512]
        launch_surfaces(text, part, [[1, 0, 0, 0]] * len(part), values[start : start + 512])
    for surface, texels in zip(surfaces, expected, strict=True):
        assert bytes(sass_harness.memory(surface)[: len(texels)]) == texels

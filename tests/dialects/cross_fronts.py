"""One program of reductions on one buffer, run through the instruction sets.

A :class:`Step` is one reduction of every lane.  Each front end in ``FRONTS`` runs the steps in order on a surface and says
which steps it can express; what the fronts that take a program leave in memory must be the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import ptxemu
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.dialects.sass.memory import BIAS
from tests.support.surface_model import ModelSurface

PTX_GEOMETRY = {"1d": "1d", "2d": "2d", "3d": "3d"}
SASS_DIM = {"1d": "1D", "2d": "2D", "3d": "3D", "a1d": "1D_ARRAY", "a2d": "2D_ARRAY"}
AXES = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": "xl", "a2d": "xyl"}


@dataclass(frozen=True)
class Step:
    """Lane i: ``op`` on the element of ``type`` at texel ``where[i]`` (x, y, z, layer in units of 4 bytes) with ``values[i]``.

    ``exch`` is a store.  Places outside the surface are dropped.
    """

    op: str
    type: str
    where: tuple[tuple[int, int, int, int], ...]
    values: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return 8 if self.type.endswith("64") else 4


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("256 MiB", workers=1)


def columns(step: Step) -> dict[str, np.ndarray]:
    """Register files: byte coordinates, the others, and both words of the operand."""
    where = np.array(step.where, np.int64).reshape(-1, 4)
    values = np.array(step.values, np.uint64)
    found = {"x": where[:, 0] * 4, "y": where[:, 1], "z": where[:, 2], "l": where[:, 3]}
    files = {name: (column & 0xFFFFFFFF).astype(np.uint32) for name, column in found.items()}
    files["low"], files["high"] = (values & 0xFFFFFFFF).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)
    return files


# ---------------------------------------------------------------- PTX


@cache
def ptx_module(instruction: str, wide: bool, coordinates: int) -> ptxemu.Module:
    names = ["surface", "address", "x", "y", "z", "l", "low", "high"]
    params = ", ".join(f".param .u64 {name}" for name in names)
    loads = []
    for name in names[2:]:
        loads += [f"ld.param.u64 %rd1, [{name}]; add.u64 %rd1, %rd1, %rd0; ld.global.b32 %{name}, [%rd1];"]
    text = f""".version 8.8
    .target sm_90
    .address_size 64
    .entry k({params}) {{
    .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .b64 %v; .reg .b64 %s; .reg .b64 %a;
    .reg .b32 %x, %y, %z, %l, %low, %high;
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4;
    {" ".join(loads)}
    ld.param.u64 %s, [surface]; ld.param.u64 %rd2, [address]; mul.wide.u32 %rd3, %r0, 8; add.u64 %rd2, %rd2, %rd3;
    ld.global.u64 %a, [%rd2];
    mov.b64 %v, {{%low, %high}};
    .reg .pred %p; setp.ne.u64 %p, %a, 0;
    {instruction} {"%v" if wide else "%low"};
    ret; }}"""
    return ptxemu.loads(text, device=device(), opt=1)


def run_ptx(surface: SurfaceObject, step: Step, instruction: str, addresses: np.ndarray) -> None:
    files = columns(step)
    module = ptx_module(instruction, step.bytes == 8, 0)
    arrays = [files[name] for name in ("x", "y", "z", "l", "low", "high")]
    module["k"][1, len(step.values)](surface, addresses, *arrays)


def ptx_sured(surface: SurfaceObject, step: Step) -> bool:
    """``sured.b``: no arrays, no exclusive or, no wrap-around counters, no float."""
    geometry = surface.surface.geometry
    legal = {"add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
             "and": ("u32",), "or": ("u32",)}  # fmt: skip
    if geometry not in PTX_GEOMETRY or step.type not in legal.get(step.op, ()):
        return False
    kind = "b32" if step.op in ("and", "or") else step.type
    tuple_ = {"1d": "{%x}", "2d": "{%x,%y}", "3d": "{%x,%y,%z,%z}"}[geometry]
    text = f"sured.b.{step.op}.{geometry}.{kind}.zero [%s, {tuple_}],"
    run_ptx(surface, step, text, np.zeros(len(step.values), np.uint64))
    return True


def ptx_red(surface: SurfaceObject, step: Step) -> bool:
    """``red.global`` at the addresses that the layout's formula gives."""
    legal = {"add": ("u32", "s32", "u64", "f32"), "inc": ("u32",), "dec": ("u32",), "exch": ()}
    if step.type not in legal.get(step.op, ("u32", "s32", "u64", "s64")):
        return False
    wide = "64" if step.bytes == 8 else "32"
    kind = f"b{wide}" if step.op in ("and", "or", "xor") else step.type
    addresses = np.array(addresses_of(surface, step), np.uint64)
    run_ptx(surface, step, f"@%p red.global.{step.op}.{kind} [%a],", addresses)
    return True


def ptx_sust(surface: SurfaceObject, step: Step) -> bool:
    """``sust.b``."""
    if step.op != "exch" or surface.surface.geometry not in PTX_GEOMETRY:
        return False
    geometry, wide = surface.surface.geometry, 8 * step.bytes
    tuple_ = {"1d": "{%x}", "2d": "{%x,%y}", "3d": "{%x,%y,%z,%z}"}[geometry]
    run_ptx(surface, step, f"sust.b.{geometry}.b{wide}.zero [%s, {tuple_}],", np.zeros(len(step.values), np.uint64))
    return True


def ptx_st(surface: SurfaceObject, step: Step) -> bool:
    """``st.global`` at the addresses that the layout's formula gives."""
    return step.op == "exch" and at_addresses(surface, step, f"st.global.b{8 * step.bytes} [%a],")


def ptx_atom(surface: SurfaceObject, step: Step) -> bool:
    """``atom.exch``, whose old value nobody reads."""
    return step.op == "exch" and at_addresses(surface, step, f"atom.global.exch.b{8 * step.bytes} _, [%a],")


def at_addresses(surface: SurfaceObject, step: Step, instruction: str) -> bool:
    run_ptx(surface, step, f"@%p {instruction}", np.array(addresses_of(surface, step), np.uint64))
    return True


def addresses_of(surface: SurfaceObject, step: Step) -> list[int]:
    """The device address of every lane's element; 0 outside the surface."""
    model = model_of(surface)
    places = [model.resolve("byte", step.bytes, 4 * x, y, z, layer, "zero") for x, y, z, layer in step.where]
    return [surface.surface.address + place if isinstance(place, int) else 0 for place in places]


def model_of(surface: SurfaceObject) -> ModelSurface:
    inner = surface.surface
    d = inner.descriptor
    order = "swizzled" if d.gob_order == 0 else "linear"
    return ModelSurface(inner.geometry, d.elem_bytes, d.width, d.height, d.depth, d.layers, layout=inner.layout,
                        pitch=d.pitch, bh=d.block_h_log2, bd=d.block_d_log2, gob_order=order)  # fmt: skip


# ---------------------------------------------------------------- SASS

SASS_SIZE = {"u32": "U32", "s32": "S32", "u64": "U64", "s64": "S64", "f32": "F32.FTZ.RN"}


@cache
def sass_module(instruction: str, axes: str) -> ptxemu.Module:
    inputs = [f".in R{4 + place} {axis}" for place, axis in enumerate(axes)]
    text = "\n".join([".header 5 image", ".const c[0x0][0x148] = 0x5", ".kernel k", *inputs, ".in R8 low", ".in R9 high",
                      f"{instruction} [R4], R8, 0x52", "EXIT"])  # fmt: skip
    return ptxemu.loads(text, dialect="sass", device=device(), opt=1)


def sass_legal(step: Step) -> bool:
    bits = ("u32", "s32", "u64")
    legal = {"add": (*bits, "f32"), "and": bits, "or": bits, "xor": bits, "inc": ("u32",), "dec": ("u32",), "exch": ()}
    return step.type in legal.get(step.op, ("u32", "s32", "u64", "s64"))


def sass_sured(surface: SurfaceObject, step: Step) -> bool:
    """``SURED.D.BA``."""
    if not sass_legal(step):
        return False
    axes = AXES[surface.surface.geometry]
    dim = SASS_DIM[surface.surface.geometry]
    module = sass_module(f"SURED.D.BA.{dim}.{step.op.upper()}.{SASS_SIZE[step.type]}.IGN", axes)
    module.bind("image", surface)
    files = columns(step)
    module["k"][1, len(step.values)](*(files[name] for name in (*axes, "low", "high")))
    return True


@cache
def sass_red_module(instruction: str) -> ptxemu.Module:
    text = "\n".join([".kernel k", ".in R2 address", ".in R3 upper", ".in R8 low", ".in R9 high",
                      "ISETP.NE.AND P0, PT, R2, RZ, PT", f"@P0 {instruction} [R2], R8", "EXIT"])  # fmt: skip
    return ptxemu.loads(text, dialect="sass", device=device(), opt=1)


def sass_red(surface: SurfaceObject, step: Step) -> bool:
    """``RED.E`` at the addresses that the layout's formula gives, in the program's own space."""
    if not sass_legal(step):
        return False
    own = [address - device().arena.base + BIAS if address else 0 for address in addresses_of(surface, step)]
    words = [np.array([address >> shift & 0xFFFFFFFF for address in own], np.uint32) for shift in (0, 32)]
    files = columns(step)
    module = sass_red_module(f"RED.E.{step.op.upper()}.{SASS_SIZE[step.type]}")
    module["k"][1, len(step.values)](*words, files["low"], files["high"])
    return True


# ---------------------------------------------------------------- vISA

CHANNELS = 8
VISA_OPERANDS = {"1d": "V40.0 V0 V0", "2d": "V40.0 V41.0 V0", "3d": "V40.0 V41.0 V42.0", "a1d": "V40.0 V43.0 V0",
                 "a2d": "V40.0 V41.0 V43.0"}  # fmt: skip


@cache
def visa_module(op: str, operands: str) -> ptxemu.Module:
    names = {"V40": "x", "V41": "y", "V42": "z", "V43": "l", "V44": "value"}
    text = [".kernel k", ".decl T6 v_type=T num_elts=1 v_name=image"]
    text += [f".decl {name} v_type=G type=ud num_elts={CHANNELS}\n.in {name} {file}" for name, file in names.items()]
    text.append(f"TYPED_ATOMIC.{op} (M1, {CHANNELS}) T6 {operands} V0 V44.0 V0 V0")
    return ptxemu.loads("\n".join(text), dialect="visa", device=device(), opt=1)


def visa_typed_atomic(surface: SurfaceObject, step: Step) -> bool:
    """``TYPED_ATOMIC`` in a thread for each eight lanes; the channels that are left over lie outside."""
    words = {"add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg"}
    words |= {"min": "imin", "max": "imax"} if step.type == "s32" else {"min": "min", "max": "max"}
    if step.op not in words or step.type not in ("u32", "s32"):
        return False
    files = columns(step)
    files["x"] = np.array([x & 0xFFFFFFFF for x, *_ in step.where], np.uint32)
    threads = -(-len(step.values) // CHANNELS)
    rows = []
    for name in ("x", "y", "z", "l", "low"):
        row = np.full(threads * CHANNELS, 0xFFFFFFFF, np.uint32)
        row[: len(step.values)] = files[name]
        rows.append(row.reshape(threads, CHANNELS))
    module = visa_module(words[step.op], VISA_OPERANDS[surface.surface.geometry])
    module.bind("image", surface)
    module["k"][1, threads](*rows)
    return True


# ---------------------------------------------------------------- CTM


@cache
def ctm_module() -> ptxemu.Module:
    text = """.kernel k umrt
    .in r0 points
    .output A image
    OUTPUT MOV.OMOD_DISABLED.RNDR_TGT_UMRT_PER_PROCESSOR_IDX out, r0
    """
    return ptxemu.loads(text, dialect="ctm", device=device(), opt=1)


def ctm_umrt(surface: SurfaceObject, step: Step) -> bool:
    """UMRT writes: stores to two-dimensional ``FLOAT32_1`` targets, at coordinates that are floats."""
    where = np.array(step.where, np.int64).reshape(-1, 4)
    words = step.op == "exch" and step.type in ("u32", "s32", "f32")
    if not words or surface.surface.geometry != "2d" or surface.surface.format.name != "R32_FLOAT":
        return False
    if (where.astype(np.float32) != where).any():
        return False
    points = np.zeros((len(where), 4), np.uint32)
    points[:, 0] = columns(step)["low"]
    points[:, 1:3] = where[:, :2].astype(np.float32).view(np.uint32)
    module = ctm_module()
    module.bind("image", surface)
    module["k"][1, len(where)](points)
    return True


Front = Callable[[SurfaceObject, Step], bool]
FRONTS: dict[str, Front] = {
    "ptx sured": ptx_sured, "ptx red": ptx_red, "sass sured": sass_sured, "sass red": sass_red,
    "visa typed_atomic": visa_typed_atomic, "ptx sust": ptx_sust, "ptx st": ptx_st, "ptx atom": ptx_atom, "ctm umrt": ctm_umrt,
}  # fmt: skip
"""Each runs a step and returns True, or returns False for what its instruction set cannot say."""


def final_bytes(front: Front, make: Callable[[], SurfaceObject], steps: Sequence[Step]) -> bytes | None:
    """The memory of a fresh surface after all steps, padding included; None if the front cannot run them all."""
    surface = make()
    for step in steps:
        if not front(surface, step):
            return None
    inner = surface.surface
    return bytes(inner.arena.view(inner.address, inner.total_bytes))


def agree(make: Callable[[], SurfaceObject], steps: Sequence[Step]) -> list[str]:
    """Assert that all fronts that can run the steps leave the same bytes; their names."""
    results = {name: final_bytes(front, make, steps) for name, front in FRONTS.items()}
    ran = {name: data for name, data in results.items() if data is not None}
    first = next(iter(ran.values()), b"")
    for name, data in ran.items():
        assert data == first, f"{name} differs from {next(iter(ran))}: {steps}"
    return list(ran)

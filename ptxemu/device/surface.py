"""Surfaces: formats, descriptors, copies to and from NumPy arrays, and the table that gives them handles.

The semantics live in the C runtime (``csrc/surface*.c``); this module creates what it works on.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.device.buffer import as_array
from ptxemu.device.handle_slots import Slots
from ptxemu.device.surface_format import FORMATS, SurfaceFormat, surface_format
from ptxemu.ir.geometry import SURFACES
from ptxemu.process.locks import new_lock
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FORMATS",
    "Surface",
    "SurfaceContext",
    "SurfaceFormat",
    "SurfacePolicy",
    "SurfaceTable",
    "surface_format",
]

GEOMETRIES: dict[str, int] = {name: getattr(lib, geometry.constant) for name, geometry in SURFACES.items()}
LAYOUTS: dict[str, int] = {
    "linear": lib.PE_LAYOUT_LINEAR,
    "pitch": lib.PE_LAYOUT_PITCH,
    "block_linear": lib.PE_LAYOUT_BLOCK_LINEAR,
}
GOB_ORDERS: dict[str, int] = {"swizzled": lib.PE_GOB_SWIZZLED, "linear": lib.PE_GOB_LINEAR}
ENUM_FAMILIES: dict[str, int] = {"opencl": lib.PE_ENUM_OPENCL, "cuda": lib.PE_ENUM_CUDA}
QUERIES: dict[str, int] = {
    "width": lib.PE_SUQ_WIDTH,
    "height": lib.PE_SUQ_HEIGHT,
    "depth": lib.PE_SUQ_DEPTH,
    "channel_data_type": lib.PE_SUQ_CHANNEL_DATA_TYPE,
    "channel_order": lib.PE_SUQ_CHANNEL_ORDER,
    "array_size": lib.PE_SUQ_ARRAY_SIZE,
    "memory_layout": lib.PE_SUQ_MEMORY_LAYOUT,
}

ALIGNMENT = 512  # of a surface's memory: that of a block-linear base


def _choice(table: Mapping[str, int], name: str, what: str) -> int:
    try:
        return table[name]
    except (KeyError, TypeError):
        raise InputError(f"no {what} is named {shown(name)}; there are {', '.join(table)}") from None


def _fill(target: Any, **fields: int) -> None:
    for name, value in fields.items():
        try:
            setattr(target, name, value)
        except (OverflowError, TypeError):
            raise InputError(f"surface {name} {shown(value)} is out of range") from None


def _set_queries(descriptor: Any, queries: Mapping[str, int]) -> None:
    if not isinstance(queries, Mapping):
        raise InputError(f"queries are values by name, not {shown(queries)}")
    for name, value in queries.items():
        which = _choice(QUERIES, name, "surface query")
        descriptor.suq_mask |= 1 << which
        descriptor.suq_value[which] = int(value) & 0xFFFFFFFF


class Surface:
    """Texels in device memory.

    ``geometry`` is one of ``1d 1d_buffer 2d 3d a1d a2d cube acube``; extents that it lacks stay 1.  ``layout`` is
    ``linear`` (1d only), ``pitch`` or ``block_linear``; strides of 0 are computed.  Memory comes from the arena, or,
    with ``address``, is ``size`` bytes of device memory that the caller owns.  ``queries`` overrides what ``suq``
    answers.
    """

    def __init__(
        self,
        arena: Arena,
        format: str | SurfaceFormat,
        width: int,
        height: int = 1,
        depth: int = 1,
        layers: int | None = None,
        *,
        geometry: str = "2d",
        layout: str = "pitch",
        levels: int = 1,
        pitch: int = 0,
        slice_stride: int = 0,
        layer_stride: int = 0,
        pitch_align: int = 0,
        block_height_log2: int = 4,
        block_depth_log2: int = 0,
        gob_order: str = "swizzled",
        enum_family: str = "opencl",
        queries: Mapping[str, int] | None = None,
        enabled: bool = True,
        address: int | None = None,
        size: int | None = None,
        name: str = "surface",
    ) -> None:
        self.format = surface_format(format)
        self.geometry = geometry
        self.layout = layout
        self.arena = arena
        self.descriptor = ffi.new("pe_surface_desc *")
        if layers is None:
            layers = 6 if geometry in ("cube", "acube") else 1
        _fill(
            self.descriptor,
            state=lib.PE_SURFACE_VALID if enabled else lib.PE_SURFACE_DISABLED,
            geom=_choice(GEOMETRIES, geometry, "surface geometry"),
            width=width,
            height=height,
            depth=depth,
            layers=layers,
            levels=levels,
            components=self.format.components,
            bits=self.format.bits,
            kind=getattr(lib, f"PE_KIND_{self.format.kind}"),
            order=getattr(lib, f"PE_ORDER_{self.format.order}"),
            layout=_choice(LAYOUTS, layout, "surface layout"),
            block_h_log2=block_height_log2,
            block_d_log2=block_depth_log2,
            gob_order=_choice(GOB_ORDERS, gob_order, "GOB order"),
            enum_family=_choice(ENUM_FAMILIES, enum_family, "enumeration family"),
            pitch_align=pitch_align,
            pitch=pitch,
            slice_stride=slice_stride,
            layer_stride=layer_stride,
        )
        _set_queries(self.descriptor, queries or {})
        self._check(lib.pe_surface_layout(self.descriptor))
        self._place(address, size, name)

    def _check(self, message: Any) -> None:
        if message:
            raise InputError(f"{self.geometry} surface of {self.format}: {ffi.string(message).decode()}")

    def _place(self, address: int | None, size: int | None, name: str) -> None:
        total = self.total_bytes
        base = self.arena.alloc(total, ALIGNMENT, name) if address is None else address
        self._finalizer = weakref.finalize(self, _release, self.arena, base) if address is None else None
        bytes_there = total if address is None or size is None else size
        # The view keeps the memory mapped, so that copies never touch memory that was given back.
        self._memory: NDArray[np.uint8] | None = self.arena.view(base, bytes_there)
        self.descriptor.base = ffi.cast("uint8_t *", base)
        self.descriptor.size = bytes_there
        self._check(lib.pe_surface_check(self.descriptor))

    @property
    def address(self) -> int:
        """The device address of the first texel."""
        return int(ffi.cast("uintptr_t", self.descriptor.base))

    @property
    def total_bytes(self) -> int:
        return int(self.descriptor.total_bytes)

    @property
    def owns_memory(self) -> bool:
        """Whether its memory is its own, and not memory of the caller."""
        return self._finalizer is not None

    @property
    def levels(self) -> int:
        return int(self.descriptor.levels)

    def shape(self, level: int = 0) -> tuple[int, ...]:
        """The shape of a level's array: layers, depth, height, width, components, of those that the surface has."""
        at = self._level(level)
        shape = [int(at.width)]
        if self.geometry not in ("1d", "1d_buffer", "a1d"):
            shape.insert(0, int(at.height))
        if self.geometry == "3d":
            shape.insert(0, int(at.depth))
        if self.geometry in ("a1d", "a2d", "cube", "acube"):
            shape.insert(0, int(self.descriptor.layers))
        if self.format.elements > 1:
            shape.append(self.format.elements)
        return tuple(shape)

    def upload(self, array: NDArray[Any], level: int = 0) -> None:
        """Copy a level from an array of :meth:`shape` and the format's dtype, components in memory order."""
        shape = self.shape(level)
        array = as_array(array)
        if array.dtype != self.format.dtype:
            raise InputError(f"a surface of {self.format} takes {self.format.dtype} components, not {array.dtype}")
        if array.shape not in (shape, (*shape, 1) if self.format.elements == 1 else shape):
            raise InputError(f"the surface's shape is {shape}, the array's {array.shape}")
        dense = np.ascontiguousarray(array)
        with self._in_use():
            lib.pe_surface_upload(self.descriptor, level, ffi.from_buffer(dense.data) if dense.size else ffi.NULL)

    def download(self, level: int = 0) -> NDArray[Any]:
        """A copy of a level, components in memory order."""
        dense = np.empty(self.shape(level), self.format.dtype)
        with self._in_use():
            lib.pe_surface_download(self.descriptor, level, ffi.from_buffer(dense.data, require_writable=True))
        return dense

    def offset(self, x: int, y: int = 0, z: int = 0, layer: int = 0, level: int = 0) -> int:
        """The byte offset of a texel from :attr:`address`."""
        at = self._level(level)
        extents = (at.width, at.height, at.depth, self.descriptor.layers)
        if not all(0 <= value < extent for value, extent in zip((x, y, z, layer), extents)):
            raise InputError(f"texel ({x}, {y}, {z}) of layer {layer} lies outside the surface")
        return int(lib.pe_surface_offset(self.descriptor, level, x * self.format.texel_bytes, y, z, layer))

    def close(self) -> None:
        """Give the memory back.  Remove the surface from its tables first."""
        self._memory = None
        if self._finalizer is not None:
            self._finalizer()

    def _level(self, level: int) -> Any:
        if not isinstance(level, int | np.integer) or not 0 <= level < self.levels:
            raise InputError(f"the surface has no mip level {shown(level)}")
        return self.descriptor.level[level]

    def overlaps(self, other: Surface) -> bool:
        """Whether two surfaces share memory."""
        return self.address < other.address + other.total_bytes and other.address < self.address + self.total_bytes

    def require_memory(self) -> None:
        """Raise InputError if the surface is closed."""
        with self._in_use():
            pass

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """The memory stays mapped meanwhile, though another thread closes the surface. Raises InputError if that is done."""
        memory = self._memory
        if memory is None:
            raise InputError("the surface is closed")
        yield
        del memory


def _release(arena: Arena, address: int) -> None:
    try:
        arena.free(address)
    except InputError:
        return  # the device was closed first and took the memory with it


class SurfacePolicy(Struct, frozen=True):
    """Choices where the instruction sets are silent (docs/semantics.md)."""

    align: str = "fault"  # a misaligned byte coordinate: fault, mask
    partial_edge: str = "reject"  # accesses that are partly past a row but inside its padding: reject, allow
    layer_bits: int = 32  # of the layer coordinate that count: 32, 16
    invalid_header: str = ""  # access through a bad handle: fault, drop; by default what the instruction set does
    missing_component: str = "zero"  # of a formatted store: zero, preserve, poison
    strict: bool = False
    absent_dim: int = 0  # what suq answers for a dimension the geometry lacks: 0, 1
    fminmax_nan: str = "other"  # minimum or maximum with a NaN operand: other, keep_old
    float_to_uint: str = "normalised"  # UINT components from floats: normalised formats, integer

    def replaced(self, changes: Mapping[str, str | int | bool]) -> SurfacePolicy:
        """The policy with ``changes`` where it has the default. Raises InputError for a wrong name or value."""
        if not changes:
            return self
        free: Any = {name: value for name, value in changes.items() if getattr(self, name) == getattr(DEFAULT, name)}
        made = replace(self, **free)
        made.fill(ffi.new("pe_su_policy *"))
        return made

    def fill(self, target: Any) -> None:
        """Write the policy into a ``pe_su_policy``."""
        for field, (member, values) in POLICY_FIELDS.items():
            value = getattr(self, field)
            value = values[0] if value == "" else value
            if value not in values:
                raise InputError(f"surface policy {field} is {shown(value)}, not one of {', '.join(map(str, values))}")
            setattr(target, member, values.index(value))


# Field of SurfacePolicy: member of pe_su_policy, and the values for 0, 1, 2.
POLICY_FIELDS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "align": ("align", ("fault", "mask")),
    "partial_edge": ("partial_edge", ("reject", "allow")),
    "layer_bits": ("layer_16bit", (32, 16)),
    "invalid_header": ("invalid_header", ("fault", "drop")),
    "missing_component": ("missing_component", ("zero", "preserve", "poison")),
    "strict": ("strict", (False, True)),
    "absent_dim": ("absent_dim", (0, 1)),
    "fminmax_nan": ("fminmax_keep_old", ("other", "keep_old")),
    "float_to_uint": ("float_to_uint", ("normalised", "integer")),
}
DEFAULT = SurfacePolicy()
CONTEXT = ffi.typeof("pe_su_context *")


class SurfaceContext:
    """What one launch knows about surfaces: a table and a policy.  Keep it until the launch has ended."""

    def __init__(self, table: SurfaceTable, policy: SurfacePolicy) -> None:
        self.table = table
        self.policy = policy
        self.pointer = ffi.new("pe_su_context *")
        self.pointer.table = table.pointer
        policy.fill(self.pointer.policy)

    def fresh(self) -> SurfaceContext:
        """Another one that knows the same and has counted nothing."""
        made = SurfaceContext.__new__(SurfaceContext)
        made.table, made.policy = self.table, self.policy
        made.pointer = ffi.new(CONTEXT, self.pointer[0])
        return made

    @property
    def dropped(self) -> int:
        """Accesses dropped because of a bad handle."""
        dropped: int = self.pointer.dropped
        return dropped

    @property
    def format_mismatches(self) -> int:
        """Reductions whose signedness the format does not give; they were unsigned."""
        mismatches: int = self.pointer.format_mismatches
        return mismatches

    def count(self, place: int) -> int:
        """What the program's dialect has counted there."""
        return int(self.pointer.counts[place])


class SurfaceTable:
    """Handles of surfaces (:mod:`ptxemu.device.handle_slots`).  Change a slot only while no launch uses its handle."""

    def __init__(self) -> None:
        pointer = lib.pe_surface_table_new()
        if not pointer:
            raise InputError("out of memory for the surface table")
        self.pointer = pointer
        self._finalizer = weakref.finalize(self, lib.pe_surface_table_free, pointer)
        self._lock = new_lock()
        self._slots = Slots("surface", pointer)
        self._bound: dict[int, Surface] = {}  # keeps the memory of live slots

    def add(self, surface: Surface) -> int:
        """A handle for a surface."""
        return self.add_array([surface])

    def add_array(self, surfaces: Sequence[Surface]) -> int:
        """The handle of the first of several surfaces."""
        with self._lock:
            handle = self._slots.take(len(surfaces))
        for index, surface in enumerate(surfaces):
            self.bind(handle, surface, index)
        return handle

    def bind(self, handle: int, surface: Surface, index: int = 0) -> None:
        """Make element ``index`` of a handle refer to a surface."""
        surface.require_memory()
        with self._lock:
            slot = self._slots.slot(handle, index)
            self._set(slot, handle, surface.descriptor)
            self._bound[slot] = surface

    def surface(self, handle: int) -> Surface | None:
        """What a handle is bound to."""
        with self._lock:
            return self._bound.get(self._slots.slot(handle, 0))

    def remove(self, handle: int) -> None:
        """Retire a handle: further accesses through it are INVALID_SURFACE."""
        with self._lock:
            for slot in self._slots.release(handle):
                self._bound.pop(slot, None)

    def is_live(self, handle: int) -> bool:
        """Whether a handle refers to a surface."""
        found = lib.pe_surface_lookup(self.pointer, handle)
        return bool(found) and found.state != lib.PE_SURFACE_UNBOUND

    def context(self, policy: SurfacePolicy | None = None) -> SurfaceContext:
        """What to give to a launch."""
        return SurfaceContext(self, policy or SurfacePolicy())

    def _set(self, slot: int, handle: int, descriptor: Any) -> None:
        if lib.pe_surface_table_set(self.pointer, slot, handle >> 32, descriptor):
            raise InputError("out of memory for the surface table")

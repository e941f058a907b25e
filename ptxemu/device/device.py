"""The emulated device: its memory, its workers and its surfaces."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import CUDA_SLACK, Arena
from ptxemu.device.buffer import Buffer, as_array, checked_shape, device_dtype
from ptxemu.device.launch_limits import MAX_LOCAL
from ptxemu.device.options import SamplerOptions, SurfaceOptions, TensorOptions, TextureOptions
from ptxemu.device.surface import SurfaceContext, SurfacePolicy, SurfaceTable
from ptxemu.device.surface_object import SurfaceObject, make_surface_object
from ptxemu.device.tensor_map import TensorMap, make_tensor_map
from ptxemu.device.texture import SamplerState, TextureTable, with_options
from ptxemu.device.texture_object import SamplerObject, TextureObject, make_texture_object
from ptxemu.ir.numerics import checked_like
from ptxemu.process.locks import importing, new_lock
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ptxemu._runtime import CData
    from ptxemu.checkers.checks import Checks
    from ptxemu.device.stream import Stream
    from ptxemu.process.numpy import Array


UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
         "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}  # fmt: skip
LONGEST_REASON = 300  # characters of what Python or NumPy says
MIN_MEMORY = 1 << 20
MAX_MEMORY = 1 << 46  # what processes can address is not much more
MAX_WORKERS = 4096
DEFAULT_STACK = 16 << 10
DEFAULT_HEAP = lib.PE_DEFAULT_HEAP
ENGINES = ("jit", "interpreter")
GUARDS = {"strict": 0, "cuda": CUDA_SLACK}
HOST_STACK_RATIO = 1024


class Device:
    """A CPU as a device. Sizes are bytes, or texts such as ``"4 GiB"``; limits can be read under the same names.

    ============ ======================== =======================================================================
    limit        default                  what it bounds
    ============ ======================== =======================================================================
    ``memory``   the machine's memory     what kernels take: buffers, variables, heap, local memory, stacks of warps.
                                          It is only reserved, and committed when needed (``used``)
    ``heap``     8 MiB, at most 16 GiB    what ``malloc`` in kernels serves; beyond it, that returns null
    ``stack``    16 KiB, at most 512 KiB  local memory of a thread for recursive functions and ``alloca``; beyond
                                          it, a fault
    ``workers``  one for each CPU         threads that run blocks
    ============ ======================== =======================================================================

    A thread has at most 512 KiB of local memory, with what the kernel declares. ``timeout`` bounds the time of a launch.

    ``surface_policy`` settles what the instruction sets leave open about surfaces.  ``engine`` is ``jit``, or ``interpreter``,
    which executes one instruction after another: slow, but without compiling anything first.

    ``host_memory`` lets kernels touch all memory of the process: arrays of NumPy that are passed to them are not copied, and
    addresses in them (``array.ctypes.data``) are pointers.  What is not mapped is still a fault, but a wrong pointer may
    change anything else (docs/security.md), so it is for programs that are trusted.

    ``guard`` is ``strict``, an access just behind an allocation is a fault, or ``cuda``: as on a GPU, the 64 KiB before and
    behind each allocation can be accessed, too, and hold zeros or what was written there.

    ``like`` says whose results programs get where PTX leaves bits open: those of an architecture such as ``sm_89``, by default
    that of their ``.target``; or ``exact`` sums of matrices, which no hardware has (docs/semantics.md).

    ``check`` names checkers, such as ``"memory"``, that watch all launches; ``checks.findings`` is what they have found
    (docs/checkers.md).

    Raises InputError for what cannot be, and if so much memory cannot be reserved.
    """

    def __init__(
        self,
        memory: int | str | None = None,
        workers: int | None = None,
        surface_policy: SurfacePolicy | None = None,
        heap: int | str | None = None,
        stack: int | str = DEFAULT_STACK,
        engine: str = "jit",
        host_memory: bool = False,
        guard: str = "strict",
        like: str = "",
        check: str | Iterable[str] = "",
    ) -> None:
        if engine not in ENGINES:
            raise InputError(f"engine must be one of {', '.join(ENGINES)}, not {shown(engine)}")
        self.engine = engine
        self.like = checked_like(like)
        if workers is not None and not (isinstance(workers, int) and 1 <= workers <= MAX_WORKERS):
            raise InputError(f"workers must be 1 to {MAX_WORKERS}, not {shown(workers)}")
        self.workers = workers or 0
        if not isinstance(host_memory, bool):
            raise InputError(f"host_memory is True or False, not {shown(host_memory)}")
        self.host_memory = host_memory
        self.arena = Arena(machine_memory() if memory is None else parse_size(memory))
        if not isinstance(guard, str) or guard not in GUARDS:
            raise InputError(f"guard must be one of {', '.join(GUARDS)}, not {shown(guard)}")
        self.arena.set_slack(GUARDS[guard])
        self.heap = DEFAULT_HEAP if heap is None else parse_size(heap, least=0)
        if heap is not None:
            self.arena.set_heap(self.heap)
        self.stack = parse_size(stack, least=0)
        if self.stack > MAX_LOCAL:
            raise InputError(f"the stack of a thread may have up to {MAX_LOCAL} bytes, not {shown(stack)}")
        self.checks = self._checked(check)
        self._surfaces = SurfaceTable()
        self._textures = TextureTable()
        self._policy = surface_policy or SurfacePolicy()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()

    def _checked(self, check: str | Iterable[str]) -> Checks | None:
        if not check:
            return None
        with importing:
            from ptxemu.checkers.checks import Checks
            from ptxemu.checkers.kinds import parse_checks

        names = parse_checks(check)
        if names and self.host_memory:
            raise InputError("memory of the host cannot be checked: give either check or host_memory")
        if self.engine != "jit" and set(names) - {"memory"}:
            raise InputError("the interpreter has the checker memory alone: use the engine jit")
        return Checks(names, self.arena.handle) if names else None

    @property
    def memory(self) -> int:
        """Bytes of device memory."""
        return self.arena.size

    @property
    def used(self) -> int:
        """Bytes of it that are allocated, in whole pages."""
        return self.arena.used

    def to_device(self, array: Array, name: str = "") -> Buffer:
        """A buffer with a copy of an array; ``name`` is what faults call it."""
        source = as_array(array)
        buffer = Buffer.allocate(self.arena, source.shape, device_dtype(source.dtype), name)
        buffer.copy_from_host(source)
        return buffer

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = "float32", name: str = "") -> Buffer:
        """A buffer of zeros, which the checker ``init`` takes for memory that nobody has written."""
        buffer = Buffer.allocate(self.arena, checked_shape(shape), device_dtype(dtype), name)
        if self.checks is not None:
            self.arena.filled(buffer.address, buffer.nbytes, blank=True)
        return buffer

    def surface(
        self, data: object, *, format: str, geometry: str = "2d", layout: str = "pitch", **options: Unpack[SurfaceOptions]
    ) -> SurfaceObject:
        """A surface with the contents of a NumPy array, or of zeros if ``data`` is a shape.

        Axes are layers, depth, height, width, components, of those that ``geometry`` (``1d 1d_buffer 2d 3d a1d a2d
        cube acube``) and ``format`` (``R32_FLOAT``, ``R8G8B8A8_UNORM`` ...) have. ``layout`` is ``linear`` (1d only),
        ``pitch`` or ``block_linear``; ``options`` are those of :class:`ptxemu.device.surface.Surface`.
        """
        with _options("surface"):
            return make_surface_object(self._surfaces, self.arena, data, format, geometry, layout, options)

    def texture(
        self, data: object, *, format: str | None = None, geometry: str | None = None, **options: Unpack[TextureOptions]
    ) -> TextureObject:
        """A texture with the contents of a NumPy array (of several, for mip levels), of zeros if ``data`` is a shape, or
        over the memory of a buffer or a surface, which see its changes and are seen by it.

        Axes and formats are as for :meth:`surface`; there are also the geometries ``2dms`` (samples, height, width) and
        ``a2dms``.  ``options`` are those of :class:`ptxemu.device.texture.SamplerState` (``filter``, ``address``,
        ``normalized`` ...), ``read_mode`` and ``srgb`` of :class:`ptxemu.device.texture.Texture`, and of
        :class:`ptxemu.device.surface.Surface` (``levels``, ``layout``, ``pitch`` ...).
        """
        with _options("texture"):
            return make_texture_object(self._textures, self.arena, data, format, geometry, options)

    def sampler(self, **options: Unpack[SamplerOptions]) -> SamplerObject:
        """A sampler for modules with ``.target texmode_independent``; the options are those of
        :class:`ptxemu.device.texture.SamplerState`."""
        state, rest = with_options(SamplerState(), {"normalized": True, **options})
        if rest:
            raise InputError(f"sampler: there is no option '{next(iter(rest))}'")
        with _options("sampler"):
            return SamplerObject(state, self._textures)

    def tensor_map(self, buffer: Buffer, box: Sequence[int] = (), **options: Unpack[TensorOptions]) -> TensorMap:
        """A tensor map of a buffer, for ``cp.async.bulk.tensor``: an argument of a kernel (``.param .b8 map[128]``).

        Axes are as NumPy has them, the innermost last; ``box`` is the shape of what one copy moves.  Options: ``steps`` (of a
        copy along each axis), ``swizzle``, ``fill`` (``zeros`` or ``nan``), ``type`` (if it is not the dtype), ``shape`` and
        ``strides`` (in bytes, without the innermost), ``interleave``; with a ``mode`` other than ``tiled``, ``lower``, ``upper``,
        ``channels`` and ``pixels`` in place of a box.
        """
        return make_tensor_map(buffer, box, options)

    def stream(self) -> Stream:
        """A stream: ``kernel[grid, block, stream](...)`` launches in its order, and does not wait."""
        with importing:
            from ptxemu.device.stream import Stream

        made = Stream(self)
        self._streams.add(made)
        return made

    def synchronize(self) -> None:
        """Wait until the work of all streams is done. Raises the first failure of one that has any."""
        for stream in list(self._streams):
            stream.synchronize()

    def native(self) -> CData:
        """A ``pe_device``; what it points to lives as long as the device."""
        made = ffi.new("pe_device *")
        made.arena, made.surfaces, made.textures = self.arena.handle, self._surfaces.pointer, self._textures.pointer
        self._policy.fill(ffi.addressof(made, "policy"))
        made.stack, made.host_stack, made.workers = self.stack, self.host_stack, self.workers
        made.host_memory = self.host_memory
        return made

    @property
    def host_stack(self) -> int:
        """Bytes of the host's stack for a warp in a kernel with real calls: its registers take more than local memory."""
        return max(self.stack, DEFAULT_STACK) * HOST_STACK_RATIO

    @property
    def surface_table(self) -> SurfaceTable:
        """The handles of the device's surfaces."""
        return self._surfaces

    @property
    def texture_table(self) -> TextureTable:
        """The handles of the device's textures and samplers."""
        return self._textures

    def surface_context(self, changes: Mapping[str, str | int | bool] | None = None) -> SurfaceContext:
        """What a launch needs to know of surfaces and textures; keep it until the launch has ended.

        ``changes`` are fields of the policy that the program settles; those that the device was given go first.
        """
        context = self._surfaces.context(self._policy.replaced(changes or {}))
        context.pointer.textures = self._textures.pointer
        return context

    def close(self) -> None:
        """Give all memory back; buffers and surfaces of the device are gone then. What runs in streams is stopped."""
        for stream in list(self._streams):
            stream.close()
        self.arena.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device(memory={self.arena.size}, workers={self.workers or 'one for each CPU'})"


@contextmanager
def _options(what: str) -> Iterator[None]:
    """Say of which object an option has a value that cannot be."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: {str(error).replace('Surface.__init__() ', '')[:LONGEST_REASON]}") from None


def parse_size(value: int | str, least: int = MIN_MEMORY) -> int:
    """A memory size: bytes, or a number with a unit such as ``512 MiB``."""
    size: int | float
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        if match is None or match[2].lower() not in UNITS:
            raise InputError(f"memory must be a size such as '4 GiB', not {shown(value)}")
        size = float(match[1]) * UNITS[match[2].lower()]
    else:
        size = value if isinstance(value, int) and not isinstance(value, bool) else -1
    if not least <= size <= MAX_MEMORY:
        raise InputError(f"memory must be {least} to {MAX_MEMORY} bytes, not {shown(value)}")
    return int(size)


def machine_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


_default: Device | None = None
_default_lock = new_lock()


def default_device() -> Device:
    """The device of modules that were given none; made at the first use."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Device()
        return _default

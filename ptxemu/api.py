"""Modules and kernels: what a program uses to load PTX and to launch it."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from msgspec import Struct
from msgspec.structs import replace

from ptxemu import dialects
from ptxemu._runtime import ffi
from ptxemu.cache import Cache
from ptxemu.device.advice import Terms, advised
from ptxemu.device.arguments import Arguments
from ptxemu.device.buffer import Buffer
from ptxemu.device.children import Child
from ptxemu.device.code import KernelCode
from ptxemu.device.device import Device, default_device
from ptxemu.device.faults import Origin
from ptxemu.device.launch import LaunchResult
from ptxemu.device.launch_limits import Extent, Shape, check_cluster, check_shared, shape_of
from ptxemu.device.module_info import KernelInfo, ModuleInfo
from ptxemu.device.module_memory import Bindable, Resident
from ptxemu.device.prepared import Prepared
from ptxemu.device.surface import POLICY_FIELDS, SurfaceContext, SurfacePolicy
from ptxemu.dialects.host import Host, host_of
from ptxemu.driver.device_runtime import with_device_runtime
from ptxemu.driver.front import read_ptx
from ptxemu.driver.program import Program, Settings, checked_tier
from ptxemu.engine import Engine, Loaded, engine_of
from ptxemu.ir.numerics import checked_like
from ptxemu.process.lazy import lazy_property
from ptxemu.process.locks import importing, new_lock
from ptxemu.process.numpy import np
from ptxemu.text.errors import DtypeWarning, Fault, InputError, LaunchTimeout, shown
from ptxemu.text.source import SourceFile, join
from ptxemu.text.suggestions import closest
from ptxemu.text.symbols import meant, symbol_of

if TYPE_CHECKING:
    from ptxemu.device.stream import Pending, Stream

Options = Mapping[str, str | int | bool]
FilePath = str | os.PathLike[str]
MAX_OPT = 3
CONFIG = ffi.typeof("pe_config *")
MAX_PREPARED = 256  # grids and blocks of a module that are remembered


def load(
    path: FilePath | Sequence[FilePath],
    *,
    strict: bool = False,
    device: Device | None = None,
    opt: int = 2,
    tier: str | None = None,
    dialect: str | None = None,
    options: Options | None = None,
    like: str | None = None,
) -> Module:
    """Load a file, or several that are linked (relocatable device code).

    ``strict`` also checks what the ``.version`` and ``.target`` allow, and makes a DtypeWarning of a launch an InputError.

    ``dialect`` is the instruction set (docs/dialects.md), by default what the suffix says.  ``options`` settle what its
    documents leave open: those of the dialect, and the fields of :class:`SurfacePolicy`.  ``tier`` is ``best``,
    ``fast`` or ``auto`` (the default, or what ``PTXEMU_TIER`` says): whether kernels whose best code takes long to make
    first run code that is made faster.  ``like`` says whose results it gets where PTX leaves bits open, as :class:`Device` does,
    which is asked if it is None.
    Raises PtxError with every diagnostic if the text is wrong, InputError if it cannot be read.
    """
    try:
        paths: list[Any] = list(path) if isinstance(path, (list, tuple)) else [path]
        names = [os.fsdecode(one) for one in paths]
    except TypeError:
        raise InputError(f"a path is a text or an object for one, not {shown(path)}") from None
    if any("\n" in name for name in names):
        raise InputError("load takes the path of a file; loads takes the text of a program")
    for name in names:
        if name.endswith(".cu"):
            raise InputError(f"{name}: is CUDA C++: compile it with nvcc -ptx {name}, or use ptxemu run")
    texts = [read_ptx(Path(name)) for name in names]
    return loads(
        texts, filename=names, strict=strict, device=device, opt=opt, tier=tier, dialect=dialect, options=options, like=like
    )


def loads(
    text: str | Sequence[str],
    *,
    filename: str | Sequence[str] = "<string>",
    strict: bool = False,
    device: Device | None = None,
    opt: int = 2,
    tier: str | None = None,
    dialect: str | None = None,
    options: Options | None = None,
    like: str | None = None,
) -> Module:
    """Load a text; ``filename`` is what messages call it, and says the dialect if nothing else does.

    Several texts of PTX, with a name each or one for all, are linked as nvlink does it: what one of them declares
    ``.extern`` another defines. Raises PtxError for names that are defined twice or not at all.
    """
    if not isinstance(opt, int) or not 0 <= opt <= MAX_OPT:
        raise InputError(f"opt must be 0 to {MAX_OPT}, not {shown(opt)}")
    if not isinstance(strict, bool | int):
        raise InputError(f"strict is True or False, not {shown(strict)}")
    if device is not None and not isinstance(device, Device):
        raise InputError(f"device must be a ptxemu.Device, not {shown(device)}")
    sources = _sources(text, filename)
    languages = [dialects.of_file(source.name) if dialect is None else dialects.find(dialect) for source in sources]
    language = languages[0]
    if len(sources) > 1 and any(one is not dialects.PTX for one in languages):
        raise InputError("only files of PTX can be linked")
    if device is not None and device.host_memory and language is not dialects.PTX:
        raise InputError(f"a device with host_memory runs PTX only, not {language.name}")
    given = _checked_options({} if options is None else options)
    policy = {name: given.pop(name) for name in list(given) if name in POLICY_FIELDS}
    if language is not dialects.PTX and (strict := strict or bool(policy.get("strict"))):
        policy.setdefault("strict", True)
    chosen = language.check_options({name: str(value) for name, value in given.items()}, POLICY_FIELDS)
    settings = Settings(
        strict, opt, dialect=language.name, options=tuple(sorted(chosen.items())), tier=checked_tier(tier),
        like=(device.like if device is not None else "") if like is None else checked_like(like),
    )  # fmt: skip
    if device is not None and device.checks is not None:
        settings = replace(settings, observed=device.checks.observed)
    if language is dialects.PTX:
        sources = with_device_runtime(sources)
    program = Program(join(sources), settings, Cache.from_environment())
    return Module(program, device, {**language.policy, **policy})


def _sources(text: str | Sequence[str], filename: str | Sequence[str]) -> list[SourceFile]:
    texts: list[Any] = list(text) if isinstance(text, (list, tuple)) else [text]
    names: list[Any] = list(filename) if isinstance(filename, (list, tuple)) else [filename] * len(texts)
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"filename is a text, or a list of them, not {shown(filename)}")
    if not texts or len(names) != len(texts):
        raise InputError(f"{len(texts)} texts need as many names, at least one; there are {len(names)}")
    return [SourceFile(name, one) for name, one in zip(names, texts, strict=True)]


def _checked_options(options: Options) -> dict[str, str | int | bool]:
    if not isinstance(options, Mapping):
        raise InputError(f"options are names with values, not {shown(options)}")
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, str | int) or (isinstance(value, int) and abs(value) >= 2**64):
            raise InputError(f"option {name} cannot be {shown(value)}")
    return dict(options)


class Module(Mapping[str, "Kernel"]):
    """A loaded module: its kernels by name. Its variables live as long as it does, as in CUDA.

    A kernel of C++ is found by its symbol, ``_Z6reducePKfPfi``, and by what it is called there, ``reduce`` or
    ``math::reduce``, unless several are called so.
    """

    def __init__(self, program: Program, device: Device | None = None, policy: Options | None = None) -> None:
        self.program = program
        self._device = device
        self._policy = policy or {}
        SurfacePolicy().replaced(self._policy)
        self.warn: Callable[[str], None] = _warn
        self._doubted: set[str] = set()
        self._lock = new_lock()
        self._resident: Resident | None = None
        self._surfaces: SurfaceContext | None = None
        self._origins: dict[str, Origin] = {}
        self._prepared: dict[tuple[str, object, object], Prepared] = {}
        self._info = program.info

    @property
    def name(self) -> str:
        return self.program.source.name

    @property
    def info(self) -> ModuleInfo:
        """Kernels, parameters and variables as plain data."""
        return self._info

    @property
    def device(self) -> Device:
        """The device that the module runs on; the default device unless one was given."""
        return self._device or self._given_device()

    def _given_device(self) -> Device:
        with self._lock:
            if self._device is None:
                self._device = default_device()
            return self._device

    def resident(self) -> Resident:
        """The module's variables in device memory, made at the first use."""
        return self._resident or self._made_resident()

    def _made_resident(self) -> Resident:
        with self._lock:
            if self._resident is None:
                self._resident = Resident(self._info, self.program.entry, self.device, self.name)
            return self._resident

    def __getitem__(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise InputError(f"a kernel's name is a text, not {shown(name)}")
        info = self._info.kernels.get(name) or self._info.kernels[symbol_of(name, self._info.kernels, self.name)]
        return Kernel(self, info)

    def get(self, name: str, default: Any = None) -> Any:
        """The kernel of a name, or the default."""
        if name not in self:
            return default
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._info.kernels)

    def __len__(self) -> int:
        return len(self._info.kernels)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(meant(name, self._info.kernels)) == 1

    def __repr__(self) -> str:
        return f"Module({self.name!r}: {', '.join(self)})"

    def get_global(self, name: str) -> Buffer:
        """A ``.global`` or ``.const`` variable as a buffer: read and write it, or pass it to a kernel."""
        return self.resident().variable(name)

    def bind(self, name: str, item: Bindable, index: int = 0) -> None:
        """Bind a surface, texture or sampler to a ``.surfref``, ``.texref`` or ``.samplerref`` variable (element ``index``
        of an array of them)."""
        self.resident().bind(name, item, index)

    @lazy_property
    def host(self) -> Host:
        """What the dialect brings to launches."""
        return host_of(self.program.settings.dialect)

    def origin(self, kernel: str) -> Origin:
        """What faults of a kernel call the places of the program."""
        found = self._origins.get(kernel)
        if found is None:
            dialect, locate = self.program.settings.dialect, self.program.source.location
            found = self._origins[kernel] = Origin(kernel, locate, dialect, self.resident().surface_name, self.host.faults)
        return found

    def surface_context(self) -> SurfaceContext:
        """What a launch of the module needs to know of surfaces; keep it until the launch has ended."""
        if self._surfaces is None:
            self._surfaces = self.device.surface_context(self._policy)
        return self._surfaces.fresh()

    def doubt(self, doubts: Sequence[str]) -> None:
        """Tell of arguments that a kernel seems to take for something else, each once, by ``warn``. Strictly, it is an error."""
        for text in doubts:
            if self.program.settings.strict:
                raise InputError(text)
            if text not in self._doubted:
                self._doubted.add(text)
                self.warn(text)

    def needs(self, kernel: str) -> tuple[bool, bool]:
        """Whether a kernel has dynamic shared memory, and whether its blocks synchronize as those of cooperative groups do."""
        with importing:
            from ptxemu.driver.needs import needs_of

        found = needs_of(self.program.ir, self.program.ir.functions[kernel])
        return found.dynamic_shared, found.cooperation

    def prepared(self, info: KernelInfo, grid: object, block: object) -> Prepared:
        """A kernel with a grid and a block, checked once."""
        key = (info.name, grid, block) if _is_plain(grid) and _is_plain(block) else None
        found = self._prepared.get(key) if key else None
        if found is None:
            found = Prepared(self.program.entry, info, shape_of(grid, block))
            if key and len(self._prepared) < MAX_PREPARED:
                self._prepared[key] = found
        return found


def _warn(text: str) -> None:
    """A warning at the launch."""
    warnings.warn(text, DtypeWarning, stacklevel=5)


def _is_plain(extent: object) -> bool:
    """Whether an extent equals no other that means something else, as 1 equals True and 1.0."""
    return type(extent) is int or (type(extent) is tuple and all(type(item) is int for item in extent))


class Kernel(Struct, frozen=True):
    """A kernel of a module; ``kernel[grid, block](*args)`` launches it."""

    module: Module
    info: KernelInfo

    @property
    def name(self) -> str:
        return self.info.name

    @overload
    def __getitem__(self, shape: tuple[object, object]) -> Launcher: ...

    @overload
    def __getitem__(self, shape: tuple[object, object, Stream]) -> StreamLauncher: ...

    def __getitem__(self, shape: tuple[object, ...]) -> Launcher | StreamLauncher:
        """The kernel with a grid and a block, each an integer or up to three of them, and a stream if it is not to wait."""
        if not isinstance(shape, tuple) or not 2 <= len(shape) <= 3:
            raise InputError(f"kernel {self.name}: write kernel[grid, block](...), each an integer or a tuple")
        launcher = Launcher(self, self.module.prepared(self.info, shape[0], shape[1]))
        if len(shape) == 2:
            return launcher
        from ptxemu.device.stream import Stream  # whoever has one has imported it

        stream = shape[2]
        if not isinstance(stream, Stream):
            raise InputError(f"kernel {self.name}: the third in brackets is a stream, not {shown(stream)}")
        if stream.device is not self.module.device:
            raise InputError(f"kernel {self.name}: the stream belongs to another device")
        return StreamLauncher(launcher, stream)

    def __call__(self, *args: object, **options: object) -> None:
        raise InputError(f"kernel {self.name} needs a grid and a block: kernel[grid, block](...)")

    def __repr__(self) -> str:
        parameters = ", ".join(f".{item.type} {item.name}" for item in self.info.parameters)
        return f"Kernel({self.name}({parameters}))"


class Launcher(Struct, frozen=True):
    """A kernel with its grid and block."""

    kernel: Kernel
    _prepared: Prepared
    _part: range | None = None

    @property
    def shape(self) -> Shape:
        return self._prepared.shape

    def part(self, first: int, end: int) -> Launcher:
        """The launch with only those blocks of its grid whose numbers, in the order x, y, z, are in ``range(first, end)``.

        They see the whole grid in ``%nctaid``. Blocks of one part must not wait for those of another; a part of a cooperative
        launch is an InputError.
        """
        if self.kernel.module.resident().launches:
            raise InputError(f"kernel {self.kernel.name}: kernels of its module launch kernels: it has no parts")
        if not 0 <= first < end <= self.shape.blocks:
            raise InputError(f"kernel {self.kernel.name}: no blocks {shown(first)} to {shown(end)} in {self.shape.blocks}")
        return replace(self, _part=range(first, end))

    def compile(self) -> KernelCode:
        """Have the code that launches run: the first of them then takes no longer than the others.

        Raises UnsupportedError if the kernel needs what ptxemu does not do.
        """
        return self._loaded()[1]

    def __call__(
        self,
        *args: object,
        shared: int = 0,
        timeout: float | None = None,
        cooperative: bool = False,
        cluster: int | tuple[int, ...] | None = None,
        printf: Callable[[str], None] | None = None,
        **named: object,
    ) -> LaunchResult:
        """Launch and wait.

        ``args`` follow the kernel's parameters, and ``named`` are the others by their names in the PTX: numbers, buffers,
        surfaces, textures, bytes or members for structs, and NumPy arrays, which the kernel changes in place. What has the memory
        of an array is as good as one: tensors of the CPU, ``bytearray``, ctypes. Of arrays that are not contiguous kernels get
        a copy. After a fault no array is changed, and it is an InputError if the kernel has written to one that is
        read-only; but a device with ``host_memory`` gives kernels the arrays themselves, and neither holds.
        ``shared`` is dynamic shared memory in bytes, ``timeout`` in seconds; ``printf`` takes the kernel's output.
        ``cooperative`` keeps all blocks resident, so that they can wait for each other (grid synchronization). ``cluster`` is
        the extent of a cluster in blocks, given as that of a grid, which it divides; a kernel may require one itself.
        """
        return self._checked(args, named, shared, timeout, cooperative, cluster, printf).run()

    def _checked(
        self,
        args: tuple[object, ...],
        named: Mapping[str, object],
        shared: object,
        timeout: object,
        cooperative: object,
        cluster: object,
        printf: object,
    ) -> _Launch:
        module, info, prepared = self.kernel.module, self.kernel.info, self._prepared
        limit = None if timeout is None else _checked_timeout(timeout)
        if not isinstance(cooperative, (int, np.bool_)):
            raise InputError(f"cooperative is True or False, not {shown(cooperative)}")
        if cooperative and self._part is not None:
            raise InputError(f"kernel {info.name}: blocks of a cooperative launch wait for each other: it has no parts")
        if printf is not None and not callable(printf):
            raise InputError(f"printf must be a function, not {shown(printf)}")
        if named:
            args = _with_named(info, args, named)
        device = module.device
        arguments = Arguments(info, args, device, prepared.rows, prepared.places)
        if arguments.doubts:
            module.doubt(arguments.doubts)
        return _Launch(self._ready(shared, bool(cooperative), cluster, printf), args, arguments, limit)

    def _ready(self, shared: object, cooperative: bool, cluster: object, printf: Callable[[str], None] | None) -> _Ready:
        """What is to be launched, compiled."""
        info, prepared = self.kernel.info, self._prepared
        engine, code, loaded = prepared.final or self._loaded()
        dynamic = check_shared(prepared.entry, prepared.facts, code.facts.static_shared, shared)
        extents = check_cluster(prepared.entry, info, prepared.facts, prepared.shape, cluster)
        return _Ready(self, engine, code, loaded, dynamic, cooperative, extents, printf)

    def _loaded(self) -> tuple[Engine, KernelCode, Loaded]:
        """What executes the kernel, and its code, which later launches need not ask for if it is final."""
        module, prepared = self.kernel.module, self._prepared
        engine = engine_of(module.device.engine)
        code, loaded = engine.load(module.program, self.kernel.name, prepared.shape.code_block)
        if code.final:
            prepared.final = engine, code, loaded
        return engine, code, loaded


class StreamLauncher(Struct, frozen=True):
    """A kernel with its grid, its block and the stream that it is launched in."""

    launcher: Launcher
    stream: Stream

    def __call__(
        self,
        *args: object,
        shared: int = 0,
        timeout: float | None = None,
        cooperative: bool = False,
        cluster: int | tuple[int, ...] | None = None,
        printf: Callable[[str], None] | None = None,
        **named: object,
    ) -> Pending[LaunchResult]:
        """Launch behind the work of the stream, and do not wait: a :class:`Pending`, which also has the result.

        Arguments are those of a launch that waits (:meth:`Launcher.__call__`), and are checked at once; the kernel is compiled,
        too. NumPy arrays are copied to the device when the launch begins, and back when it has ended: they belong to it until
        then. ``timeout`` counts from the begin, and ``printf`` is called on the stream's thread.
        """
        launch = self.launcher._checked(args, named, shared, timeout, cooperative, cluster, printf)
        return self.stream.add(f"launch of `{self.launcher.kernel.name}`", launch.run)


class _Ready(Struct):
    """A launch that has been checked, without its arguments."""

    launcher: Launcher
    engine: Engine
    code: KernelCode
    loaded: Loaded
    shared: int
    cooperative: bool
    cluster: Extent
    printf: Callable[[str], None] | None

    def run(self, params: bytes, timeout: float | None, stop: threading.Event | None) -> tuple[LaunchResult, list[Child]]:
        """Launch and wait. What the kernel has launched itself is told as well: it is not done yet."""
        module, info, prepared = self.launcher.kernel.module, self.launcher.kernel.info, self.launcher._prepared
        loaded, device = self.loaded, module.device
        resident, surfaces = module.resident(), module.surface_context()
        host = module.host
        found = host.check(info, resident)
        checks = device.checks
        if checks is not None:
            checks.launching(loaded.address, info.name, module.program.source)
        ended = None if self.code.final else self.engine.watch(module.program, info.name, prepared.shape.code_block)
        run = self.engine.runs(loaded)(device.arena, module.origin(info.name), self.printf, stop)
        try:
            config = prepared.config(resident, self.code, (self.shared, self.cooperative, self.cluster))
            config.params = data = ffi.from_buffer(params)
            config.surfaces, config.kernel = surfaces.pointer, loaded.address
            if (part := self.launcher._part) is not None:
                config.first, config.blocks = part.start, len(part)
            done = run.execute(config, timeout, (data, loaded, resident, surfaces, prepared))
        except (Fault, LaunchTimeout) as error:
            terms = Terms(self.shared, self.cooperative, self.code.facts.spins and prepared.shape.blocks > 1)
            raise advised(error, terms, partial(module.needs, info.name)) from None
        finally:
            launched = resident.launched(run.grid_id)
            if ended is not None:
                ended()
            if checks is not None:
                checks.collect()
        done.surface_drops, done.format_mismatches = surfaces.dropped, surfaces.format_mismatches
        done.counts = {**host.counts(surfaces), **found}
        return done, launched

    def child(self, child: Child) -> _Ready:
        """What the kernel has launched, or a child of its own."""
        module, name = self.launcher.kernel.module, self.launcher.kernel.name
        if child.kernel is None:
            raise InputError(f"kernel {name} has launched what is no kernel of its module")
        try:
            kernel = Kernel(module, module.info.kernels[child.kernel])
            launcher = Launcher(kernel, module.prepared(kernel.info, child.grid, child.block))
            return launcher._ready(child.shared, False, None, self.printf)
        except InputError as error:
            raise InputError(f"kernel {name} has launched {child.kernel}: {error}") from None


class _Launch(Struct):
    """A launch with its arguments. ``args`` keeps the memory that it works on."""

    ready: _Ready
    args: tuple[object, ...]
    arguments: Arguments
    timeout: float | None

    def run(self, stop: threading.Event | None = None) -> LaunchResult:
        """Copy arrays, launch, wait, copy them back. CancelledError: ``stop`` has been set."""
        try:
            done = self._run_all(self.arguments.copy_in(), stop)
            self.arguments.copy_out()
            return done
        finally:
            self.arguments.release()

    def _run_all(self, params: bytes, stop: threading.Event | None) -> LaunchResult:
        """Launch, and then what the kernel has launched, one after another, each with all that it launches itself."""
        begun = time.monotonic()
        done, launched = self.ready.run(params, self.timeout, stop)
        if not launched:
            return done
        waiting = [(self.ready, child) for child in reversed(launched)]
        while waiting:
            parent, child = waiting.pop()
            ready = parent.child(child)
            result, launched = ready.run(child.arguments, self._left(begun), stop)
            waiting += [(ready, one) for one in reversed(launched)]
            done = done.also(result)
        return done

    def _left(self, begun: float) -> float | None:
        """The seconds for what the kernel has launched."""
        left = None if self.timeout is None else begun + self.timeout - time.monotonic()
        if left is not None and left <= 0:
            name = self.ready.launcher.kernel.name
            raise LaunchTimeout(f"kernel `{name}` did not end within {self.timeout:g} s with what it has launched")
        return left


def _with_named(kernel: KernelInfo, args: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
    """The arguments in the kernel's order."""
    names = [parameter.name for parameter in kernel.parameters]
    for name in named:
        if name not in names:
            raise InputError(f"kernel {kernel.name} has no parameter {shown(name)}{closest(name, names)}")
        if name in names[: len(args)]:
            raise InputError(f"kernel {kernel.name}: parameter {shown(name)} is given twice")
    rest = names[len(args) :]
    missing = [name for name in rest if name not in named]
    if missing:
        raise InputError(f"kernel {kernel.name}: no value for parameter {', '.join(missing)}")
    return (*args, *(named[name] for name in rest))


def _checked_timeout(timeout: object) -> float | None:
    """Seconds; infinity means no limit."""
    if timeout is None:
        return None
    if isinstance(timeout, int | float | np.integer | np.floating) and not isinstance(timeout, bool) and timeout > 0:
        try:
            return float(timeout)
        except OverflowError:
            return math.inf
    raise InputError(f"timeout must be a positive number of seconds, not {shown(timeout)}")

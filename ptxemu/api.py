"""Modules and kernels: what a program uses to load PTX and to launch it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock

import numpy as np

from ptxemu import dialects
from ptxemu.arguments import Arguments
from ptxemu.buffer import Buffer
from ptxemu.cache import Cache
from ptxemu.device import Device, default_device
from ptxemu.diagnose import read_ptx
from ptxemu.errors import InputError
from ptxemu.limits import Shape, check_kernel, check_shared, rows_of, shape_of
from ptxemu.names import closest
from ptxemu.program import Program, Settings
from ptxemu.resident import Bindable, Resident
from ptxemu.run import LaunchResult, Record, launch
from ptxemu.signature import KernelInfo, ModuleInfo
from ptxemu.surface import POLICY_FIELDS, SurfaceContext, SurfacePolicy

Options = Mapping[str, str | int | bool]


def load(
    path: str | os.PathLike[str],
    *,
    strict: bool = False,
    device: Device | None = None,
    opt: int = 2,
    dialect: str | None = None,
    options: Options | None = None,
) -> Module:
    """Load a file. ``strict`` also checks what the ``.version`` and ``.target`` allow.

    ``dialect`` is ``ptx``, ``sass`` ..., by default what the suffix says.  ``options`` settle what the documents of an
    instruction set leave open: those of the dialect, and the fields of :class:`SurfacePolicy`.
    Raises PtxError with every diagnostic if the text is wrong, InputError if it cannot be read.
    """
    name = os.fspath(path)
    text = read_ptx(Path(path))
    return loads(text, filename=name, strict=strict, device=device, opt=opt, dialect=dialect, options=options)


def loads(
    text: str,
    *,
    filename: str = "<string>",
    strict: bool = False,
    device: Device | None = None,
    opt: int = 2,
    dialect: str | None = None,
    options: Options | None = None,
) -> Module:
    """Load a text; ``filename`` is what messages call it, and says the dialect if nothing else does."""
    language = dialects.of_file(filename) if dialect is None else dialects.find(dialect)
    given = dict(options or {})
    policy = {name: given.pop(name) for name in list(given) if name in POLICY_FIELDS}
    if language is not dialects.PTX and (strict := strict or bool(policy.get("strict"))):
        policy.setdefault("strict", True)
    chosen = language.check_options({name: str(value) for name, value in given.items()}, POLICY_FIELDS)
    settings = Settings(strict, opt, dialect=language.name, options=tuple(sorted(chosen.items())))
    program = Program(text, filename, settings, Cache.from_environment())
    return Module(program, device, {**language.policy, **policy})


class Module(Mapping[str, "Kernel"]):
    """A loaded module: its kernels by name. Its variables live as long as it does, as in CUDA."""

    def __init__(self, program: Program, device: Device | None = None, policy: Options | None = None) -> None:
        self.program = program
        self._device = device
        self._policy = policy or {}
        SurfacePolicy().replaced(self._policy)
        self._lock = Lock()
        self._info = program.info

    @property
    def name(self) -> str:
        return self.program.source.name

    @property
    def info(self) -> ModuleInfo:
        """Kernels, parameters and variables as plain data."""
        return self._info

    @cached_property
    def device(self) -> Device:
        """The device that the module runs on; the default device unless one was given."""
        return self._device or default_device()

    @cached_property
    def _resident(self) -> Resident:
        return Resident(self._info, self.device, self.name)

    def resident(self) -> Resident:
        """The module's variables in device memory, made at the first use."""
        with self._lock:
            return self._resident

    def __getitem__(self, name: str) -> Kernel:
        info = self._info.kernels.get(name)
        if info is None:
            if not self._info.kernels:
                raise InputError(f"{self.name} has no kernels")
            hint = closest(name, self._info.kernels) or f" (it has {', '.join(self._info.kernels)})"
            raise InputError(f"{self.name} has no kernel '{name}'{hint}")
        return Kernel(self, info)

    def __iter__(self) -> Iterator[str]:
        return iter(self._info.kernels)

    def __len__(self) -> int:
        return len(self._info.kernels)

    def __contains__(self, name: object) -> bool:
        return name in self._info.kernels

    def __repr__(self) -> str:
        return f"Module({self.name!r}: {', '.join(self)})"

    def get_global(self, name: str) -> Buffer:
        """A ``.global`` or ``.const`` variable as a buffer: read and write it, or pass it to a kernel."""
        return self.resident().variable(name)

    def bind(self, name: str, item: Bindable, index: int = 0) -> None:
        """Bind a surface, texture or sampler to a ``.surfref``, ``.texref`` or ``.samplerref`` variable (element ``index``
        of an array of them)."""
        self.resident().bind(name, item, index)

    def surface_context(self) -> SurfaceContext:
        """What a launch of the module needs to know of surfaces; keep it until the launch has ended."""
        return self.device.surface_context(self._policy)

    def locate(self, record: Record) -> str:
        """``file:line`` of a fault record."""
        pos = record["pos"]
        return f"{self.name}:{self.program.source.line(pos)}" if isinstance(pos, int) else ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a module; ``kernel[grid, block](*args)`` launches it."""

    module: Module
    info: KernelInfo

    @property
    def name(self) -> str:
        return self.info.name

    def __getitem__(self, shape: tuple[object, object]) -> Launcher:
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise InputError(f"kernel {self.name}: write kernel[grid, block](...), each an integer or a tuple")
        checked = shape_of(*shape)
        check_kernel(self.info, checked)
        return Launcher(self, checked)

    def __call__(self, *args: object, **options: object) -> None:
        raise InputError(f"kernel {self.name} needs a grid and a block: kernel[grid, block](...)")

    def __repr__(self) -> str:
        parameters = ", ".join(f".{item.type} {item.name}" for item in self.info.parameters)
        return f"Kernel({self.name}({parameters}))"


@dataclass(frozen=True, slots=True)
class Launcher:
    """A kernel with its grid and block."""

    kernel: Kernel
    shape: Shape

    def __call__(
        self,
        *args: object,
        shared: int = 0,
        timeout: float | None = None,
        cooperative: bool = False,
        printf: Callable[[str], None] | None = None,
    ) -> LaunchResult:
        """Launch and wait.

        ``args`` follow the kernel's parameters: numbers, buffers, surfaces, textures, bytes for structs, and NumPy arrays,
        which the kernel changes in place (those that are not writeable are inputs only; after a fault none is changed).
        ``shared`` is dynamic shared memory in bytes, ``timeout`` in seconds; ``printf`` takes the kernel's output.
        ``cooperative`` keeps all blocks resident, so that they can wait for each other (grid synchronization).
        """
        module, info = self.kernel.module, self.kernel.info
        device = module.device
        arguments = Arguments(info, args, device, rows_of(info, self.shape))
        code, loaded = module.program.load(info.name, self.shape.block)
        dynamic = check_shared(info, code.static_shared, shared)
        resident, surfaces = module.resident(), module.surface_context()
        unsynced = resident.overlapping(info.unsynced)
        try:
            params = arguments.copy_in()
            result = launch(
                device.arena,
                loaded.address,
                kernel_name=info.name,
                grid=self.shape.grid,
                block=self.shape.block,
                params=params,
                static_shared=code.static_shared,
                dynamic_shared=dynamic,
                local_bytes=code.local_bytes + (device.stack if code.stacked else 0),
                suspends=code.suspends,
                spins=code.spins,
                cooperative=bool(cooperative),
                stack_bytes=device.host_stack if code.calls else 0,
                global_base=resident.bases["global"],
                const_base=resident.bases["const"],
                const_size=len(module.info.const_image),
                handles=resident.handles_address,
                surfaces=surfaces.pointer,
                workers=device.workers,
                timeout=_checked_timeout(timeout),
                locate=module.locate,
                dialect=module.program.settings.dialect,
                surface_name=resident.surface_name,
                printf=printf,
            )
            arguments.copy_out()
        finally:
            arguments.release()
        return replace(
            result,
            surface_drops=surfaces.dropped,
            format_mismatches=surfaces.format_mismatches,
            umrt_dropped=surfaces.umrt_dropped,
            umrt_partial=surfaces.umrt_partial,
            unsynced_reads=unsynced,
        )


def _checked_timeout(timeout: float | None) -> float | None:
    if timeout is not None and not (isinstance(timeout, int | float | np.number) and timeout > 0):
        raise InputError(f"timeout must be a positive number of seconds, not {timeout!r}")
    return None if timeout is None else float(timeout)

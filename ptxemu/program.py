"""A PTX text, its facts and its machine code.

Both are made once and kept on disk, so that a warm start neither parses nor compiles.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import llvmlite

from ptxemu import jit
from ptxemu.cache import Cache, Entry, build_fingerprint, key_of
from ptxemu.limits import Extent
from ptxemu.signature import ModuleInfo
from ptxemu.source import SourceFile
from ptxemu.variant import variant_of

if TYPE_CHECKING:
    from ptxemu.ir import Module


@dataclass(frozen=True, slots=True)
class Settings:
    """How a program is read, checked and compiled; ``options`` are those of its dialect."""

    strict: bool = False
    opt: int = 2
    check: frozenset[str] = frozenset()
    dialect: str = "ptx"
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Object code of one variant of a kernel and what a launch must know of it."""

    object: bytes
    symbol: str
    static_shared: int
    local_bytes: int
    suspends: bool
    spins: bool
    variant: str
    calls: bool
    stacked: bool


class Program:
    """One PTX text. Safe to use from several threads."""

    def __init__(self, text: str, filename: str, settings: Settings, cache: Cache) -> None:
        self.source = SourceFile(filename, text)
        self.settings = settings
        self._cache = cache
        self._lock = RLock()
        self._loaded: dict[tuple[str, str], tuple[KernelCode, jit.LoadedCode]] = {}

    @cached_property
    def info(self) -> ModuleInfo:
        """Kernels and variables. Raises PtxError if the text is wrong."""
        with self._lock:
            key = key_of("module", *self._identity)
            entry = self._cache.get(key)
            if entry is not None:
                return ModuleInfo.from_json(entry.header, entry.payload)
            from ptxemu.describe import describe

            info = describe(self.ir)
            self._cache.put(key, Entry(info.to_json(), info.global_image + info.const_image))
            return info

    @cached_property
    def ir(self) -> Module:
        """The checked module."""
        from ptxemu import compile

        with self._lock:
            settings = self.settings
            return compile.front(self.source.text, self.source.name, settings.strict, settings.dialect, dict(settings.options))

    def load(self, kernel: str, block: Extent) -> tuple[KernelCode, jit.LoadedCode]:
        """A kernel's code for blocks of this shape, ready to run."""
        variant = variant_of(block)
        with self._lock:
            found = self._loaded.get((kernel, variant))
            if found is None:
                code = self.code(kernel, block)
                found = code, jit.load(code.object, code.symbol)
                self._loaded[kernel, variant] = found
            return found

    def code(self, kernel: str, block: Extent) -> KernelCode:
        """A kernel's code for blocks of this shape, from the cache or compiled. Raises UnsupportedError."""
        key = key_of("kernel", *self._identity, kernel, variant_of(block), *jit.host())
        entry = self._cache.get(key)
        if entry is not None:
            return KernelCode(object=entry.payload, **entry.header)
        code = self._compile(kernel, block)
        header: dict[str, Any] = asdict(code)
        payload = header.pop("object")
        self._cache.put(key, Entry(header, payload))
        return code

    def _compile(self, kernel: str, block: Extent) -> KernelCode:
        from ptxemu import compile

        options = compile.Options(opt=self.settings.opt, check=self.settings.check)
        made = compile.kernel(self.ir, kernel, options, block)
        return KernelCode(**{item.name: getattr(made, item.name) for item in fields(KernelCode)})

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        settings = self.settings
        checks = ",".join(sorted(settings.check))
        language = (settings.dialect, *(f"{name}={value}" for name, value in settings.options))
        return (build_fingerprint(), llvmlite.__version__, self.source.text, settings.strict, settings.opt, checks, *language)

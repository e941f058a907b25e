"""A PTX text, its facts and its machine code.

All are made once and kept on disk, so that a warm start neither parses nor compiles.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import RLock, Timer
from typing import TYPE_CHECKING, Any

import llvmlite
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from ptxemu.cache import Cache, build_fingerprint, key_of, machine_identity
from ptxemu.device.code import KernelCode
from ptxemu.device.entry import KERNEL, MODULE, Entry, opened, sealed
from ptxemu.device.launch_limits import Extent
from ptxemu.device.linked_code import LinkedCode, LinkError
from ptxemu.device.module_entry import body_of, info_of
from ptxemu.device.module_info import ModuleInfo
from ptxemu.driver import symbols
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.observed import Observed
from ptxemu.process.gc_pause import importing_many
from ptxemu.process.lazy import lazy_property
from ptxemu.process.locks import importing, new_lock
from ptxemu.process.stages import COMPILE, stage
from ptxemu.text.errors import InputError, shown
from ptxemu.text.source import SourceFile, parts_of

if TYPE_CHECKING:
    from ptxemu.driver.lowering import Tier
    from ptxemu.ir.ops import Module

TIERS = ("auto", "fast", "best")
TIER_VARIABLE = "PTXEMU_TIER"
LONG = 1.0  # seconds; a kernel that runs longer is worth better code
MAX_BLOCKS = 256  # shapes of blocks that are remembered


def _nothing() -> None:
    """What is to be done at the end of a launch that nobody watches."""


class Settings(Struct, frozen=True):
    """How a program is read, checked and compiled; ``options`` are those of its dialect.

    ``tier``: ``best``, ``fast`` or ``auto`` (fast first where the best code takes long to make, then the best).
    ``observed``: which accesses to memory the code tells the arena's observer of.  ``like``: what it computes where PTX leaves
    that open (ir/numerics.py).
    """

    strict: bool = False
    opt: int = 2
    dialect: str = "ptx"
    options: tuple[tuple[str, str], ...] = ()
    tier: str = "auto"
    observed: Observed = ""
    like: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "options": [list(pair) for pair in self.options]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        pairs = tuple((str(name), str(value)) for name, value in data["options"])
        return cls(**{**data, "options": pairs})


def checked_tier(given: str | None) -> str:
    """The tier of settings; None: what the environment says. Raises InputError."""
    tier, what = (os.environ.get(TIER_VARIABLE) or "auto", TIER_VARIABLE) if given is None else (given, "tier")
    if not isinstance(tier, str) or tier not in TIERS:
        raise InputError(f"{what} must be one of {', '.join(TIERS)}, not {shown(tier)}")
    return tier


class _Compiled(Struct, eq=False):
    """The code of one kernel for one block shape: what runs, and better code that has come but does not run yet."""

    kernel: str
    block: Extent
    lock: RLock = field(default_factory=new_lock)
    loaded: tuple[KernelCode, LinkedCode] | None = None
    better: KernelCode | None = None
    asked: int | None = None
    """The process that has asked for better code."""


class Program:
    """One PTX text, or several that are linked. Safe to use from several threads."""

    def __init__(self, source: SourceFile, settings: Settings, cache: Cache) -> None:
        self.source = source
        self.settings = settings
        self._cache = cache
        self._lock = new_lock()
        self._compiled: dict[tuple[str, str], _Compiled] = {}
        self._compiled_for: dict[tuple[str, Extent], _Compiled] = {}
        self._facts: tuple[ModuleInfo, Entry] | None = None
        self._ir: Module | None = None
        self._told = bool(symbols.wanted())  # other tools are told of its code

    @property
    def info(self) -> ModuleInfo:
        """Kernels and variables. Raises PtxError if the text is wrong."""
        with self._lock:
            if self._facts is None:
                self._facts = self._described()
            return self._facts[0]

    @property
    def entry(self) -> Entry:
        """The same, as the launch side takes it."""
        with self._lock:
            assert self.info is not None and self._facts is not None
            return self._facts[1]

    def _described(self) -> tuple[ModuleInfo, Entry]:
        key = key_of("module", self.identity)
        entry = self._cache.get(key, MODULE)
        if entry is None:
            with importing_many():
                from ptxemu.driver.describe import describe

            body = body_of(describe(self.ir))
            self._cache.put(key, MODULE, body)
            entry = opened(key, MODULE, sealed(key, MODULE, body))
            assert entry is not None
        return info_of(entry), entry

    @property
    def ir(self) -> Module:
        """The checked module."""
        with importing_many():
            from ptxemu.driver import compile

        with self._lock:
            if self._ir is None:
                given = self.settings
                self._ir = compile.front_of(self.source, given.strict, given.dialect, dict(given.options), given.like)
            return self._ir

    def load(self, kernel: str, block: Extent) -> tuple[KernelCode, LinkedCode]:
        """A kernel's code for blocks of this shape, ready to run: the best that there is. Raises UnsupportedError."""
        compiled = self._compiled_code(kernel, block)
        with compiled.lock:
            code, compiled.better = compiled.better, None
            if code is None and compiled.loaded is not None:
                self._improve(compiled)
                return compiled.loaded
            found = code or self.code(kernel, block)
            compiled.loaded = self._linked(found, kernel) or self._linked(self._made(kernel, block), kernel)
            assert compiled.loaded is not None
            return compiled.loaded

    def _linked(self, code: KernelCode, kernel: str) -> tuple[KernelCode, LinkedCode] | None:
        """None if the cache's entry is not an object."""
        try:
            linked = LinkedCode(code.object, code.symbol)
        except LinkError:
            return None
        if self._told:
            symbols.tell(code.object, code.symbol, linked.section, kernel)
        return code, linked

    def watch(self, kernel: str, block: Extent) -> Callable[[], None]:
        """A launch of code that is not final starts: if it takes long, better code is made. Call the result when it ends."""
        if not self._may_ask(compiled := self._compiled_code(kernel, block)):
            return _nothing
        timer = Timer(LONG, self._improve, [compiled])
        timer.daemon = True
        with suppress(RuntimeError):  # the system allows no more threads
            timer.start()
        return timer.cancel

    def code(self, kernel: str, block: Extent) -> KernelCode:
        """A kernel's code for blocks of this shape, from the cache or compiled. Raises UnsupportedError."""
        for tier in self._tiers:
            if code := self._cached(kernel, block, tier):
                return code
        return self._made(kernel, block)

    def best_code(self, kernel: str, block: Extent) -> KernelCode:
        """The same, of the best tier only."""
        return self._cached(kernel, block, "best") or self._keep(kernel, block, self._compile(kernel, block, "best"))

    def is_cached(self, kernel: str, block: Extent) -> bool:
        """Whether a kernel's code for blocks of this shape lies in the cache."""
        return any(self._cached(kernel, block, tier) for tier in self._tiers)

    def _cached(self, kernel: str, block: Extent, tier: str) -> KernelCode | None:
        """Unless another LLVM has made it, which may have been replaced for its errors."""
        code = KernelCode.from_entry(self._cache.get(self._key(kernel, block, tier), KERNEL))
        return code if code is not None and code.maker == llvmlite.__version__ else None

    @lazy_property
    def identity(self) -> str:
        """The hash of all that the facts and the code of the program depend on, but for the machine."""
        return key_of(*self._identity)

    def _made(self, kernel: str, block: Extent) -> KernelCode:
        """The same, compiled."""
        return self._keep(kernel, block, self._compile(kernel, block, self._tiers[-1]))

    @property
    def _tiers(self) -> tuple[Tier, ...]:
        """Those whose code may run, the best first."""
        return ("best",) if self.settings.tier == "best" or self._told else ("best", "fast")

    def _compiled_code(self, kernel: str, block: Extent) -> _Compiled:
        found = self._compiled_for.get((kernel, block))
        if found is None:
            key = kernel, variant_of(block)
            found = self._compiled.get(key) or self._compiled.setdefault(key, _Compiled(kernel, block))
            if len(self._compiled_for) < MAX_BLOCKS:
                self._compiled_for[kernel, block] = found
        return found

    def _may_ask(self, compiled: _Compiled) -> bool:
        """Whether better code is wanted, and this process has not asked for it."""
        return self.settings.tier == "auto" and compiled.asked != os.getpid()

    def _improve(self, compiled: _Compiled) -> None:
        """Have better code made, once; the next launch takes it."""
        loaded = compiled.loaded
        if loaded is None or loaded[0].final or not self._may_ask(compiled):
            return
        compiled.asked = os.getpid()
        with importing:
            from ptxemu.driver import improve
            from ptxemu.driver.request import Request

        def deliver(answer: KernelCode | None) -> None:
            compiled.better = answer
            # code that cannot be made better is final, so that later programs do not try again
            self._keep(compiled.kernel, compiled.block, compiled.better or replace(loaded[0], final=True), "best")

        asked = Request(self.settings.to_json(), self._files, compiled.kernel, compiled.block, self.source.text)
        improve.improve(asked, deliver)

    def _keep(self, kernel: str, block: Extent, code: KernelCode, tier: str | None = None) -> KernelCode:
        self._cache.put(self._key(kernel, block, tier or ("best" if code.final else "fast")), KERNEL, code.body)
        return code

    def _key(self, kernel: str, block: Extent, tier: str) -> str:
        """What code is kept under. Whether it is observed is no part of the identity: that may be settled after loading."""
        kind = f"{self.settings.observed} observed, {tier}" if self.settings.observed else tier
        kind = f"{kind}, with lines" if self._told else kind
        return key_of("kernel", self.identity, kind, kernel, variant_of(block), machine_identity())

    def _compile(self, kernel: str, block: Extent, tier: Tier) -> KernelCode:
        with importing_many():
            from ptxemu.driver import compile, lowering

        options = lowering.Options(opt=self.settings.opt, tier=tier, observed=self.settings.observed, lines=self._told)
        module = self.ir
        with stage(COMPILE):
            return compile.kernel(module, kernel, options, block)

    @property
    def _identity(self) -> tuple[object, ...]:
        settings = self.settings
        language = (settings.dialect, *(f"{name}={value}" for name, value in settings.options))
        lengths = [length for _, length in self._files]
        text = self.source.text
        return (build_fingerprint(), text, *lengths, settings.strict, settings.opt, settings.like, *language)

    @property
    def _files(self) -> list[tuple[str, int]]:
        """The name of each text and its length."""
        return [(part.name, len(part.text)) for part in parts_of(self.source)]

"""Kernels for the runtime's tests, written with llvmlite's IR builder: the JIT's contract without the JIT."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import llvmlite.binding as llvm
from llvmlite import ir

from ptxemu._runtime import ffi
from ptxemu.device.arena import Arena
from ptxemu.device.faults import Origin
from ptxemu.device.launch import SYMBOLS, LaunchResult, Run
from ptxemu.text.source import Location

I32, I64, PTR, VOID = ir.IntType(32), ir.IntType(64), ir.PointerType(), ir.VoidType()
ALL = 0xFFFFFFFF
SIGNATURES: dict[str, tuple[ir.Type, list[ir.Type]]] = {
    "pe_stop": (VOID, [PTR]),
    "pe_fault": (VOID, [PTR, I32, I32, I32, I32, I64, I32]),
    "pe_check": (VOID, [PTR, I32, I32, I32, I32, PTR]),
    "pe_yield": (VOID, [PTR]),
    "pe_barrier": (VOID, [PTR, I32, I32, I32, I32, I32]),
    "pe_barrier_red": (I32, [PTR, I32, I32, I32, I32, I32, I32]),
    "pe_vprintf": (VOID, [PTR, I32, I32, PTR, PTR, PTR]),
    "pe_assertfail": (VOID, [PTR, I32, I32, PTR, PTR, PTR, PTR]),
    "pe_malloc": (VOID, [PTR, I32, PTR, PTR]),
    "pe_free": (VOID, [PTR, I32, I32, PTR]),
    "pe_atomic": (VOID, [PTR, PTR, I32, PTR, PTR, PTR, PTR]),
    "pe_clock": (I64, [PTR]),
    "pe_globaltimer": (I64, [PTR]),
}
_numbers = count()


class Code:
    """An IR builder that knows the warp."""

    def __init__(self, module: ir.Module, name: str) -> None:
        self.module = module
        self.function = ir.Function(module, ir.FunctionType(VOID, [PTR]), name)
        self.function.attributes.add("noinline")
        self.warp = self.function.args[0]
        self.b = ir.IRBuilder(self.function.append_basic_block())

    def i32(self, value: int) -> ir.Constant:
        return ir.Constant(I32, value)

    def i64(self, value: int) -> ir.Constant:
        return ir.Constant(I64, value)

    def at(self, base: ir.Value, index: ir.Value | int, type: ir.Type) -> ir.Value:
        """Address of ``base[index]``, an array of ``type``."""
        index = self.i32(index) if isinstance(index, int) else index
        return self.b.gep(base, [index], source_etype=type)

    def field(self, name: str, type: ir.Type = I32, index: ir.Value | int = 0) -> ir.Value:
        offset = ffi.offsetof("pe_warp", name)
        return self.b.load(self.at(self.at(self.warp, offset, ir.IntType(8)), index, type), typ=type)

    def param(self, index: int, type: ir.Type = I64) -> ir.Value:
        """The index-th 8-byte parameter."""
        base = self.b.inttoptr(self.field("param_base", I64), PTR)
        return self.b.load(self.at(base, index, I64), typ=type)

    def pointer(self, address: ir.Value) -> ir.Value:
        return self.b.inttoptr(address, PTR)

    def call(self, name: str, *args: ir.Value | int) -> ir.Value:
        result, types = SIGNATURES[name]
        function = self.module.globals.get(name) or ir.Function(self.module, ir.FunctionType(result, types), name)
        values = [self.warp, *args]
        return self.b.call(function, [ir.Constant(t, v) if isinstance(v, int) else v for t, v in zip(types, values, strict=True)])

    @contextmanager
    def loop(self, bound: ir.Value | int) -> Iterator[ir.Value]:
        """``for (i32 i = 0; i < bound; i++)``."""
        bound = self.i32(bound) if isinstance(bound, int) else bound
        slot = self.b.alloca(I32)
        self.b.store(self.i32(0), slot)
        head, body, end = (self.function.append_basic_block() for _ in range(3))
        self.b.branch(head)
        self.b.position_at_end(head)
        index = self.b.load(slot, typ=I32)
        self.b.cbranch(self.b.icmp_unsigned("<", index, bound), body, end)
        self.b.position_at_end(body)
        yield index
        self.b.store(self.b.add(index, self.i32(1)), slot)
        self.b.branch(head)
        self.b.position_at_end(end)

    @contextmanager
    def lanes(self) -> Iterator[ir.Value]:
        """For every lane that exists."""
        with self.loop(32) as lane:
            bit = self.b.and_(self.b.lshr(self.field("active"), lane), self.i32(1))
            with self.b.if_then(self.b.icmp_unsigned("!=", bit, self.i32(0))):
                yield lane

    def forever(self, body: Callable[[], None] = lambda: None) -> None:
        """Loop until the stop flag is set, then leave."""
        head, out = self.function.append_basic_block(), self.function.append_basic_block()
        self.b.branch(head)
        self.b.position_at_end(head)
        body()
        stop = self.b.load(self.field("asked", PTR), typ=I32)
        self.b.cbranch(self.b.icmp_unsigned("==", stop, self.i32(0)), head, out)
        self.b.position_at_end(out)
        self.call("pe_stop")


class Kernel:
    """Compiled code of ``build``, ready to launch."""

    def __init__(self, build: Callable[[Code], None]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = ir.Module()
        code = Code(module, "kernel")
        build(code)
        code.b.ret_void()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2, codemodel="small", reloc="pic")
        library = llvm.JITLibraryBuilder().add_ir(llvm.parse_assembly(str(module)))
        for name in SIGNATURES:
            library.import_symbol(name, SYMBOLS[name])
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
        self._tracker = library.export_symbol("kernel").link(self._jit, f"test{next(_numbers)}")
        self.address = self._tracker["kernel"]

    def __call__(
        self,
        arena: Arena,
        *params: int,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (32, 1, 1),
        **options: object,
    ) -> LaunchResult:
        raw = ffi.from_buffer(struct.pack(f"<{len(params)}Q", *params))
        run = {name: options.pop(name) for name in ("printf", "timeout", "keeps") if name in options}
        given = {"kernel": self.address, "grid": grid, "block": block, "params": raw, "params_size": len(raw), **options}
        config = ffi.new("pe_config *", given)
        config.suspends = config.suspends or config.spins or config.cooperative
        origin = Origin("test", lambda pos: Location("test.ptx", pos))
        return Run(arena, origin, run.get("printf")).execute(config, run.get("timeout"), run.get("keeps"))  # type: ignore[arg-type]

"""Runs one elementwise lowering over NumPy arrays: ``run("add.sat.s32", a, b)``.

The lowering is wrapped in an LLVM function with a loop over the arrays, at width 0 (scalars) or 32 (one warp).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, lru_cache

import llvmlite.binding as llvm
import numpy as np

from ptxemu import _runtime
from ptxemu.check.modifiers import sort_modifiers
from ptxemu.driver.jit import target_of
from ptxemu.ir.ops import Imm, Op, Reg, Vec
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.isa import rows
from ptxemu.isa.operands import OperandPattern
from ptxemu.lower.core.emit import ELEMENTWISE, SPELLED, Emitter
from ptxemu.lower.core.registry import lowerings
from ptxemu.lower.core.target import Target

lowerings()
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

WIDTHS = (0, 32)
DTYPES = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
RUNTIME = {"pe_round": int(_runtime.ffi.cast("uintptr_t", _runtime.ffi.addressof(_runtime.lib, "pe_round")))}


@dataclass(frozen=True)
class Form:
    """An instruction: ``text`` is opcode and modifiers; ``dsts`` results; ``immediates`` are (source index, bits)."""

    text: str
    dsts: int
    srcs: int
    immediates: tuple[tuple[int, int], ...] = ()
    vector: int = 0


class ArrayEmitter(Emitter):
    def __init__(self, lanes: int, target: Target) -> None:
        super().__init__(lanes)
        self.target = target
        self.slots: list[str] = []

    def temporary(self, type: str) -> str:
        name = self.fresh()
        self.slots.append(f"  {name} = alloca {type}, align 64")
        return name


def resolve(kind: str, mods: dict[str, str]) -> ScalarType:
    if kind.startswith("wide("):
        narrow = resolve(kind[5:-1], mods)
        return TYPES[f"{narrow.kind}{2 * narrow.bits}"]
    if kind == "random" or kind.startswith("dot("):
        return TYPES["b32"]
    return TYPES[mods.get(kind, kind)]


def _elements(pattern: OperandPattern) -> int:
    """How many operands stand for one that is a vector of as many elements in every form."""
    return int(pattern.count) if pattern.count and pattern.count.isdecimal() else 1


def make_op(form: Form) -> Op:
    """The operation that the checker would make of the first row which takes these modifiers and operands."""
    opcode, *modifiers = form.text.split(".")
    candidates = sort_modifiers(rows()[opcode], tuple(modifiers), strict=False)
    assert isinstance(candidates, list), candidates
    for candidate in candidates:
        row, mods = candidate.row, candidate.mods
        patterns: list[OperandPattern] = []
        for pattern in row.operands:
            patterns += [pattern, pattern.second] if pattern.second else [pattern]
        results = [p for p in patterns if p.role == "dst" for _ in range(_elements(p))]
        dst_types = [resolve(p.type, mods) for p in results][: form.dsts or None]
        sources = [p for p in patterns if p.role == "src" for _ in range(_elements(p))]
        given = form.srcs - len(row.implicit.reads)
        src_types = [resolve(p.type, mods) for i, p in enumerate(sources) if i < given or not p.optional]
        src_types += [PRED] * len(row.implicit.reads)
        dst_types += [PRED] * len(row.implicit.writes)
        if form.vector:
            return _vector_op(form, row, mods, dst_types[0])
        if len(src_types) == form.srcs:
            immediates = dict(form.immediates)
            srcs = tuple(Imm(immediates[i], kind) if i in immediates else Reg(f"s{i}", kind) for i, kind in enumerate(src_types))
            dsts = tuple(Reg(f"d{i}", kind) for i, kind in enumerate(dst_types))
            return Op(row, mods, dsts, srcs, tuple(dst_types), tuple(src_types), 0, 0)
    raise AssertionError(f"no row takes {form}")


def _vector_op(form: Form, row: object, mods: dict[str, str], kind: ScalarType) -> Op:
    """``mov`` with a vector of ``form.vector`` elements, as source if there are several sources, else as destination."""
    part = TYPES[f"b{kind.bits // form.vector}"]
    parts = tuple(Reg(f"e{i}", part) for i in range(form.vector))
    whole = Reg("w", kind)
    if form.srcs > 1:
        return Op(row, mods, (whole,), (Vec(parts),), (kind,), (part,) * form.vector, 0, 0)  # type: ignore[arg-type]
    return Op(row, mods, parts, (whole,), (part,) * form.vector, (kind,), 0, 0)  # type: ignore[arg-type]


def _load(e: Emitter, index: int, kind: ScalarType) -> str:
    memory = "i8" if kind.bits == 1 else SPELLED.get(kind.llvm, kind.llvm)
    address = e.inst(f"getelementptr {memory}, ptr %s{index}, i64 %i")
    value = e.inst(f"load {e.ty(memory)}, ptr {address}, align 1")
    return e.cast("trunc", memory, value, "i1") if kind.bits == 1 else value


def _store(e: Emitter, index: int, kind: ScalarType, value: str) -> None:
    memory = "i8" if kind.bits == 1 else SPELLED.get(kind.llvm, kind.llvm)
    value = e.cast("zext", "i1", value, "i8") if kind.bits == 1 else value
    address = e.inst(f"getelementptr {memory}, ptr %d{index}, i64 %i")
    e.stmt(f"store {e.ty(memory)} {value}, ptr {address}, align 1")


def module_parts(form: Form, lanes: int, name: str, target: Target) -> tuple[set[str], str, Op]:
    """What the module of a form declares and defines besides, and its function."""
    op = make_op(form)
    e = ArrayEmitter(lanes, target)
    sources = []
    constants = dict(form.immediates)
    for i, kind in enumerate(op.src_types):
        assert kind is not None
        sources.append(e.int(kind.bits, constants[i]) if i in constants else _load(e, i, kind))
    result = ELEMENTWISE[op.row.lower](e, op, *sources)
    results = (result,) if isinstance(result, str) else result
    assert len(results) == len(op.dsts), (form, results)
    for i, (kind, value) in enumerate(zip(op.dst_types, results, strict=True)):
        _store(e, i, kind, value)
    pointers = [f"ptr %d{i}" for i in range(len(results))] + [f"ptr %s{i}" for i in range(len(sources))]
    lines = [
        f"define void @{name}({', '.join(pointers)}, i64 %n) {{",
        "entry:",
        *e.slots,
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
        *e.lines,
        f"  %next = add i64 %i, {max(lanes, 1)}",
        "  %more = icmp ult i64 %next, %n",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return set(e.declarations.values()), "\n".join(lines), op


@cache
def host() -> tuple[str, str]:
    """The name of this CPU, and its features."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def target_machine(cpu: str = "", triple: str = "", opt: int = 1) -> llvm.TargetMachine:
    name, features = (cpu, "") if cpu else host()
    target = llvm.Target.from_triple(triple) if triple else llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=opt)


@dataclass(frozen=True)
class Code:
    """Machine code of a form: the address of a function for each width."""

    op: Op
    addresses: dict[int, int]
    engine: llvm.ExecutionEngine  # which owns it


@lru_cache(maxsize=64)  # machine code of all forms would take gigabytes
def compiled(form: Form, cpu: str = "") -> Code:
    """Both widths in one module, which takes LLVM two thirds of the time of two."""
    names = {lanes: f"of_{lanes}" for lanes in WIDTHS}
    declared, functions, ops = zip(*(module_parts(form, lanes, name, target_of(cpu or None)) for lanes, name in names.items()))
    module = llvm.parse_assembly("\n".join([*sorted(set().union(*declared)), *functions]))
    module.verify()
    machine = target_machine(cpu)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = False  # as ptxemu compiles
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    for symbol, address in RUNTIME.items():
        llvm.add_symbol(symbol, address)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return Code(ops[0], {lanes: engine.get_function_address(name) for lanes, name in names.items()}, engine)


def padded(values: np.ndarray, bits: int) -> np.ndarray:
    """The values as unsigned patterns, their number rounded up to a multiple of the warp size."""
    flat = np.ascontiguousarray(values).astype(DTYPES[bits]) if bits == 1 else np.ascontiguousarray(values).view(DTYPES[bits])
    return np.concatenate([flat, np.resize(flat, -len(flat) % 32)])


def execute(form: Form, *arrays: np.ndarray, lanes: int, cpu: str = "") -> list[np.ndarray]:
    code = compiled(form, cpu)
    op = code.op
    count = len(arrays[0])
    constants = dict(form.immediates)
    sources = []
    rest = iter(arrays)
    for i, kind in enumerate(op.src_types):
        assert kind is not None
        sources.append(np.zeros(0, np.uint8) if i in constants else padded(next(rest), kind.bits))
    total = len(padded(arrays[0], arrays[0].dtype.itemsize * 8))
    results = [np.zeros(total, DTYPES[kind.bits]) for kind in op.dst_types]
    pointers = [a.ctypes.data for a in (*results, *sources)]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), ctypes.c_int64)
    prototype(code.addresses[lanes])(*pointers, total)
    return [r[:count] for r in results]


def run(text: str, *arrays: np.ndarray, dsts: int = 1, immediates: dict[int, int] | None = None, vector: int = 0,
        cpu: str = "") -> np.ndarray:  # fmt: skip
    """The results' bit patterns (one array for each destination, or the only one), equal at both widths."""
    constants = tuple((immediates or {}).items())
    form = Form(text, dsts, len(arrays) + len(constants), constants, vector)
    scalar, warp = (execute(form, *arrays, lanes=lanes, cpu=cpu) for lanes in WIDTHS)
    for one, other in zip(scalar, warp, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=f"{text}: scalar and warp code disagree")
    return warp[0] if len(warp) == 1 else np.stack(warp)  # type: ignore[no-any-return]


def check(text: str, want: list[int], *arrays: np.ndarray, **options: object) -> None:
    """Assert that the (single) result equals the expected bit patterns; the message shows the first difference."""
    got = run(text, *arrays, **options)  # type: ignore[arg-type]
    expected = np.array(want, dtype=got.dtype)
    wrong = np.nonzero(got != expected)[0]
    if len(wrong):
        i = wrong[0]
        shown = ", ".join(hex(int(a.view(DTYPES[a.dtype.itemsize * 8])[i])) for a in arrays)
        raise AssertionError(f"{text}({shown}) = {int(got[i]):#x}, not {int(expected[i]):#x}; {len(wrong)} of {len(got)} differ")

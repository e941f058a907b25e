"""Device functions that are not inlined: those that recurse or are called through an address.

Each becomes an LLVM function of PROTOTYPE: the warp, the lanes that call, the offset in local memory where its
frame may start, and a block with its arguments and, behind them, room for its results, one vector for each cell
(passes/marshal.py). It returns the lanes that come back; the others have left the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Function, Imm, Op, Operand, Reg, SymRef
from ptxemu.ir.types import B32, B64, U64, ScalarType
from ptxemu.lower.control.sync import poll
from ptxemu.lower.core.access import frame_end, note_position, symbol_address
from ptxemu.lower.core.context import MASK, WORD, Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise, source_type
from ptxemu.lower.core.masks import first_lane
from ptxemu.passes.internal import COPY_OUT
from ptxemu.passes.marshal import FRAME_ALIGN

PROTOTYPE = "i32 @{}(ptr noalias %w, i32 %mask, i64 %stack, ptr %block)"
ALIGN = 32  # of the vectors in a block


# ---------------------------------------------------------------- the caller's side


def real_call(ctx: Context, op: Op) -> None:
    """call (PTX ISA "call") of a function of the module."""
    assert op.call is not None
    args, returns = op.call.args, [value for value in op.call.returns if isinstance(value, Reg)]
    values = [value for value in args if isinstance(value, (Reg, Imm))]
    places = _places([*values, *returns])
    block = ctx.call_block(places[-1])
    for value, place in zip(values, places):
        _put(ctx, block, place, value.type, ctx.vector_of(value, value.type))
    mask, stack = ctx.bits_of(ctx.active), _stack_end(ctx, op["stack"])
    if isinstance(op.call.callee, Function):
        note_position(ctx, op)
        symbol = ctx.unit.symbols[op.call.callee]
        returned = ctx.inst(f"call i32 @{symbol}(ptr %w, i32 {mask}, i64 {stack}, ptr {block})")
    else:
        targets = ctx.spill("i64", _addresses(ctx, op))
        symbol = _dispatcher(ctx, op.call.targets or ())
        returned = ctx.inst(
            f"call i32 @{symbol}(ptr %w, i32 {mask}, i64 {stack}, ptr {block}, ptr {targets}, i32 {ctx.position(op)})"
        )
    ctx.noted_space = ""
    for value, place in zip(returns, places[len(values) :]):
        ctx.bind(value, _get(ctx, block, place, value.type))
    if op.dsts:
        ctx.define(op, 0, ctx.mask_from_bits(returned))


def _places(cells: Iterable[Reg | Imm]) -> list[int]:
    """Where each cell's vector lies in a block, and the block's size."""
    found = [0]
    for cell in cells:
        found.append(found[-1] + cell.type.bytes * LANES)
    return found


def _put(ctx: Context, block: str, place: int, kind: ScalarType, value: str) -> None:
    at = ctx.inst(f"getelementptr i8, ptr {block}, i64 {place}")
    ctx.stmt(f"store <{LANES} x {kind.llvm}> {value}, ptr {at}, align {ALIGN}")


def _get(ctx: Context, block: str, place: int, kind: ScalarType) -> str:
    at = ctx.inst(f"getelementptr i8, ptr {block}, i64 {place}")
    return ctx.inst(f"load <{LANES} x {kind.llvm}>, ptr {at}, align {ALIGN}")


def _stack_end(ctx: Context, pointer: Operand) -> str:
    """The highest end of the calling lanes' stacks: the frame of the callee is at one offset for all."""
    if ctx.shape(pointer) is not None:
        return ctx.scalar_of(pointer, U64)
    used = ctx.vector.select(ctx.active, "i64", ctx.vector_of(pointer, U64), ctx.vector.int(64, 0))
    name = f"llvm.vector.reduce.umax.v{LANES}i64"
    ctx.declare(name, f"declare i64 @{name}({WORD})")
    return ctx.inst(f"call i64 @{name}({WORD} {used})")


@effect("_outgoing")
def outgoing(ctx: Context, op: Op) -> None:
    """Where the callee's frame starts: there is room for the parameters, and they are aligned.

    What is called behind it in the same block starts there, too, unless its parameters are larger.
    """
    pointer, size = op["stack"], op["size"]
    assert isinstance(size, Imm)
    stack = ctx.vector_of(pointer, U64) if ctx.shape(pointer) is None else ctx.scalar_of(pointer, U64)
    ctx.define(op, 0, ctx.kept(f"outgoing {stack} {size.bits}", lambda: _outgoing(ctx, op, size.bits)))


def _outgoing(ctx: Context, op: Op, size: int) -> str:
    stack = ctx.scalar.intrinsic("uadd.sat", "i64", _stack_end(ctx, op["stack"]), str(FRAME_ALIGN - 1))
    start = ctx.scalar.bin("and", "i64", stack, str(-FRAME_ALIGN))
    end = ctx.scalar.intrinsic("uadd.sat", "i64", start, str(size))

    def overflow() -> list[str]:
        note_position(ctx, op)
        ctx.call("void", "pe_stack_overflow", ("ptr", "%w"), ("i32", ctx.bits_of(ctx.active)), attributes="cold")
        return []

    ctx.when(ctx.scalar.icmp("ugt", "i64", end, ctx.field("local_size")), overflow, None, [], likely=False)
    return start


@effect("_copy_out", "_copy_back")
def copy_parameter(ctx: Context, op: Op) -> None:
    """A large parameter that is in memory anyway: all of its bytes, lane by lane."""
    out, size = op.row is COPY_OUT, op["size"]
    variable, frame = (op["s"], op["d"]) if out else (op["d"], op["s"])
    assert isinstance(variable, Addr) and isinstance(variable.base, SymRef) and isinstance(frame, Addr) and isinstance(size, Imm)
    base, stride = ctx.field("local_base"), ctx.field("local_size")
    there = ctx.scalar.bin("add", "i64", ctx.scalar_of(frame.base, U64), str(frame.offset))
    there = ctx.scalar.bin("add", "i64", base, there)
    here, step = symbol_address(ctx, variable.base, 0), "0"  # all lanes have the parameters of the kernel
    if op.mods["space"] == "local":
        here, step = ctx.scalar.bin("add", "i64", base, here), stride
    target, source = ((there, stride), (here, step)) if out else ((here, step), (there, stride))
    arguments = ", ".join(f"i64 {value}" for value in (*target, *source, str(size.bits)))
    ctx.stmt(f"call void @{_copier(ctx)}(i32 {ctx.bits_of(ctx.active)}, {arguments})")


def _copier(ctx: Context) -> str:
    """A function that copies so many bytes in each lane; addresses are those of lane 0, and from one lane to the next."""
    name = "copy.lanes"
    ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    ctx.declare("llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    arguments = "i32 %mask, i64 %target, i64 %target.step, i64 %source, i64 %source.step, i64 %size"
    ctx.helpers[name] = f"""define internal void @{name}({arguments}) noinline nounwind {{
entry:
  br label %lanes
lanes:
  %left = phi i32 [ %mask, %entry ], [ %rest, %lane ]
  %some = icmp ne i32 %left, 0
  br i1 %some, label %lane, label %done
lane:
  %number = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %wide = zext i32 %number to i64
  %to.offset = mul i64 %wide, %target.step
  %to = add i64 %target, %to.offset
  %from.offset = mul i64 %wide, %source.step
  %from = add i64 %source, %from.offset
  %from.pointer = inttoptr i64 %from to ptr
  %to.pointer = inttoptr i64 %to to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %to.pointer, ptr %from.pointer, i64 %size, i1 false)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  br label %lanes
done:
  ret void
}}"""
    return name


def _addresses(ctx: Context, op: Op) -> str:
    callee = op["callee"]
    assert isinstance(callee, (Reg, Imm))
    kind = B64 if callee.type.bits == 64 else B32
    return ctx.vector.cast("zext", kind.llvm, ctx.vector_of(callee, kind), "i64")


def _dispatcher(ctx: Context, targets: tuple[Function, ...]) -> str:
    """A function that calls each target once, with the lanes that call it; an address that is none of theirs is a fault.

    Addresses are tokens (ModuleLayout.function_address): nothing that a program computes is ever jumped to.
    """
    tokens = {function: ctx.layout.module.function_address(function) for function in targets}
    name = ".".join(["dispatch", *sorted(ctx.unit.symbols[function] for function in targets)])
    if name in ctx.helpers:
        return name
    pos, _ = ctx.layout.warp_field("pos")
    cases = " ".join(f"i64 {token}, label %call.{token}" for token in tokens.values())
    blocks = "".join(
        f"""call.{token}:
  %back.{token} = call i32 @{ctx.unit.symbols[function]}(ptr %w, i32 %same, i64 %stack, ptr %block)
  br label %next
"""
        for function, token in tokens.items()
    )
    returns = ", ".join([*(f"[ %back.{token}, %call.{token} ]" for token in tokens.values()), "[ 0, %invalid ]"])
    ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    ctx.declare("pe_invalid_call", "declare void @pe_invalid_call(ptr, i32, i32, i64) cold")
    arguments = "ptr noalias %w, i32 %mask, i64 %stack, ptr %block, ptr %targets, i32 %pos"
    ctx.helpers[name] = f"""define internal i32 @{name}({arguments}) noinline nounwind "probe-stack"="inline-asm" {{
entry:
  %all = load {WORD}, ptr %targets, align 64
  %noted = getelementptr i8, ptr %w, i64 {pos}
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %next ]
  %returned = phi i32 [ 0, %entry ], [ %more, %next ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %target = extractelement {WORD} %all, i32 %lane
  %first = insertelement {WORD} poison, i64 %target, i64 0
  %everywhere = shufflevector {WORD} %first, {WORD} poison, <{LANES} x i32> zeroinitializer
  %equal = icmp eq {WORD} %all, %everywhere
  %equal.bits = bitcast {MASK} %equal to i{LANES}
  %same = and i32 %equal.bits, %left
  store volatile i32 %pos, ptr %noted, align 4
  switch i64 %target, label %invalid [ {cases} ]
{blocks}invalid:
  call void @pe_invalid_call(ptr %w, i32 %pos, i32 %lane, i64 %target)
  br label %next
next:
  %back = phi i32 {returns}
  %more = or i32 %returned, %back
  %others = xor i32 %same, -1
  %rest = and i32 %left, %others
  %again = icmp ne i32 %rest, 0
  br i1 %again, label %loop, label %done
done:
  ret i32 %more
}}"""
    return name


@effect("_invalid_call")
def invalid_call(ctx: Context, op: Op) -> None:
    """What the dispatcher does, for a call that has become a choice between direct calls."""
    lane = first_lane(ctx)
    target = ctx.inst(f"extractelement {WORD} {_addresses(ctx, op)}, i32 {lane}")
    ctx.call(
        "void", "pe_invalid_call", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", lane), ("i64", target), attributes="cold"
    )


# ---------------------------------------------------------------- the callee's side


@effect("_enter")
def enter(ctx: Context, op: Op) -> None:
    """Fault if there is no room for the frame in local memory or on the host's stack; poll."""
    end = frame_end(ctx)
    full = ctx.scalar.icmp("ugt", "i64", end, ctx.field("local_size"))
    here = ctx.inst(f"ptrtoint ptr {ctx.alloca('i64')} to i64")
    deep = ctx.scalar.icmp("ult", "i64", here, ctx.field("stack_limit"))

    def overflow() -> list[str]:
        ctx.call("void", "pe_stack_overflow", ("ptr", "%w"), ("i32", "%mask"), attributes="cold")
        return []

    ctx.when(ctx.scalar.bin("or", "i1", full, deep), overflow, None, [], likely=False)
    poll(ctx)


@effect("_arguments")
def arguments(ctx: Context, op: Op) -> None:
    cells = [dst for dst in op.dsts if dst is not None]
    places = _places(cells)
    ctx.argument_bytes = places[-1]
    for index, (cell, place) in enumerate(zip(cells, places)):
        ctx.define(op, index, _get(ctx, "%block", place, cell.type))


@effect("_results")
def results(ctx: Context, op: Op) -> None:
    """Only the calling lanes' results are written: other targets of an indirect call have written those of the rest."""
    cells = [source for source in op.srcs if isinstance(source, (Reg, Imm))]
    for cell, place in zip(cells, _places(cells)):
        place += ctx.argument_bytes
        kept = _get(ctx, "%block", place, cell.type)
        value = ctx.vector.select(ctx.active, cell.type.llvm, ctx.vector_of(cell, cell.type), kept)
        _put(ctx, "%block", place, cell.type, value)
    ctx.stmt(f"store i32 {ctx.bits_of(ctx.active)}, ptr {_returned(ctx)}, align 4")


def _returned(ctx: Context) -> str:
    """The slot of the lanes that have returned."""
    if ctx.returned is None:
        ctx.returned = ctx.alloca("i32")
        ctx.prologue.append(f"  store i32 0, ptr {ctx.returned}, align 4")
    return ctx.returned


def finish(ctx: Context) -> None:
    """The end of a device function."""
    ctx.stmt(f"ret i32 {ctx.inst(f'load i32, ptr {_returned(ctx)}, align 4')}")


# ---------------------------------------------------------------- words of parameters (passes/marshal.py)


@elementwise("_extract")
def _extract(e: Emitter, op: Op, value: str, shift: str) -> str:
    (result,), kind = op.dst_types, op.type_of("a")
    assert kind is not None
    amount = e.cast("trunc" if kind.bits < 32 else "zext", "i32", shift, kind.llvm)
    value = e.bin("lshr", kind.llvm, value, amount)
    return e.cast("trunc" if result.bits < kind.bits else "zext", kind.llvm, value, result.llvm)


@elementwise("_deposit")
def _deposit(e: Emitter, op: Op, rest: str, value: str, shift: str) -> str:
    t = source_type(op, 0)
    amount = e.cast("trunc" if op.dst_types[0].bits < 32 else "zext", "i32", shift, t)
    return e.bin("or", t, rest, e.bin("shl", t, value, amount))

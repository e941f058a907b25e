"""Branches by which no lane leaves: a loop, as in most of its turns, or the kernel. Neither the masks nor the values of those who
would leave need be made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxemu.analysis.comparisons import INVERSE, MIRRORED, ORDERS, compares_two, takes_both
from ptxemu.analysis.linear import Linear
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Op, Operand, Reg
from ptxemu.lower.core.context import Context

COMPARED = (32, 64)  # bits


def nobody_leaves(ctx: Context, linear: Linear, block: Block, masks: tuple[str, str]) -> tuple[Block, str] | None:
    """Where lanes go that stay in a loop, or else in the kernel, and an i1, set only if all of them do.

    None: nothing tells that at little cost. ``masks``: who goes to each successor."""
    loop = linear.structure.loops.get(block)
    inside = _only(loop is not None and succ in loop.blocks for succ in block.succs)
    number = _only(bool(succ.succs) for succ in block.succs) if inside is None else inside
    if number is None:
        return None
    everyone = all_go(ctx, block, number)
    if everyone is None and inside is not None:
        everyone = ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(masks[1 - inside]), "0")
    return None if everyone is None else (block.succs[number], everyone)


def _only(flags: Iterable[bool]) -> int | None:
    """The number of the flag of two that is set, if the other one is not."""
    both = list(flags)
    return None if both[0] == both[1] else both.index(True)


def all_go(ctx: Context, block: Block, number: int) -> str | None:
    """i1: set only if all lanes take a way, as comparisons say of two of them. None: nothing tells that at little cost."""
    assert block.cond is not None
    return _holds(ctx, _made(block), block.cond, (number == 0) != block.negated)


def compared(block: Block) -> set[Reg]:
    """The registers that such comparisons are of."""
    made, found = _made(block), set[Reg]()
    work: list[Operand | None] = [block.cond]
    while work:
        op = made.get(operand) if isinstance(operand := work.pop(), Reg) else None
        if op is not None and "cmp" in op.mods:
            found.update(source for source in op.srcs if isinstance(source, Reg))
        elif op is not None and (takes_both(op, True) or takes_both(op, False)):
            work += op.srcs
    return found


def _made(block: Block) -> dict[Reg, Op]:
    return {reg: op for op in block.ops for reg in op.results}


def _holds(ctx: Context, made: Mapping[Reg, Op], operand: Operand | None, wanted: bool) -> str | None:
    """i1: a predicate that is made in this block has the wanted value in all lanes."""
    op = made.get(operand) if isinstance(operand, Reg) else None
    if op is None or op.guard is not None or any(op.negs):
        return None
    if compares_two(op):
        return _in_all_lanes(ctx, op, wanted)
    if takes_both(op, wanted):
        both = [_holds(ctx, made, source, wanted) for source in op.srcs]
        return None if None in both else ctx.scalar.bin("and", "i1", *map(str, both))
    return None


def _in_all_lanes(ctx: Context, op: Op, wanted: bool) -> str | None:
    """i1: the comparison of a pattern with one bound has the wanted result in all lanes. No lane's value has wrapped, then."""
    kind, order, a, b = op.type_of("a"), ORDERS.get(op.mods["cmp"]), op["a"], op["b"]
    if kind is None or kind.kind not in "us" or kind.bits not in COMPARED or order is None:
        return None
    if isinstance(b, Reg) and not ctx.is_uniform(b):
        a, b, order = b, a, MIRRORED[order]
    shape = ctx.shape(a)
    if not isinstance(a, Reg) or a.type.bits != kind.bits or shape is None or shape.widenings or not ctx.is_uniform(b):
        return None
    scalar, wide, extend = ctx.scalar, f"i{2 * kind.bits}", "sext" if kind.is_signed else "zext"
    base, bound = (scalar.cast(extend, kind.llvm, ctx.scalar_of(one, kind), wide) for one in (a, b))
    first, last = (scalar.bin("add", wide, base, str(offset)) for offset in shape.spread)
    least = -(1 << kind.bits - 1) if kind.is_signed else 0
    most = least + (1 << kind.bits) - 1
    order = order if wanted else INVERSE[order]
    rises = order in ("lt", "le")
    good = scalar.icmp(f"s{order}", wide, last if rises else first, bound)
    inside = scalar.icmp("sge", wide, first, str(least)) if rises else scalar.icmp("sle", wide, last, str(most))
    return scalar.bin("and", "i1", good, inside)

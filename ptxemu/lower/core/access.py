"""Addresses of memory accesses, and the test that each of them passes before memory is touched.

Addresses that form a pattern are tested by one scalar compare (aligned, in range), varying ones as vectors; the runtime
decides where that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import tells_accesses
from ptxemu.ir.ops import BYPASSING, STRONG, Addr, Imm, MemoryAccess, Op, Reg, SymRef, Variable
from ptxemu.ir.types import B32, B64, ScalarType
from ptxemu.isa.table import CLUSTER
from ptxemu.lower.core import trips
from ptxemu.lower.core.context import WORD, Context
from ptxemu.lower.core.distributed import Windows
from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.gather import beyond, outside
from ptxemu.lower.core.grouped import bases_of, lanes_of
from ptxemu.lower.core.layout import STARTS
from ptxemu.lower.core.literals import offsets_literal
from ptxemu.passes.internal import IN_FRAME

SPACES = {
    "generic": lib.PE_GENERIC, "global": lib.PE_GLOBAL, "shared": lib.PE_SHARED, "local": lib.PE_LOCAL,
    "const": lib.PE_CONST, "param": lib.PE_PARAM,
}  # fmt: skip
KINDS = {"read": lib.PE_READ, "write": lib.PE_WRITE, "update": lib.PE_UPDATE}
WINDOWS = {"shared": "shared_size", "local": "local_size", "const": "const_size", "param": "param_size"}
CONSTANT = ("const", "param")
NOTED = ("generic", "global")
"""Spaces whose accesses may hit an unmapped page: their positions are noted."""


class Range(Struct):
    """Bytes of device memory, two i64; ``first`` is a multiple of all alignments."""

    first: str
    size: str


class Span(Struct):
    """What one test covers: a pattern of addresses from ``base`` on (a scalar i64), ``size`` bytes at each."""

    space: str
    base: str
    shape: Shape
    size: int


class Access(Struct):
    """One access, as the row of its instruction states it: what is tested, observed and named in faults.

    The lanes of ``mask`` read, write or update (``kind``: PE_READ ...) ``bytes`` bytes each, None if only the execution tells
    how many.  ``safe``: known to be aligned and in range without a test.  ``made``: what makes ``base`` and ``narrow``, which
    costs nothing a second time, or only where it is needed.  ``grouped``: the address has one base for each group of lanes.
    ``admitted``: an i1 that is set if an observer need not be told, for which all of a pattern must be in range; or "".
    """

    op: Op
    kind: int
    address: Addr
    space: str
    bytes: int | None
    mask: str
    made: Callable[[], tuple[str, str]]
    shape: Shape | None
    safe: bool = False
    grouped: bool = False
    admitted: str = ""

    @property
    def base(self) -> str:
        """A scalar i64 when ``shape`` is a pattern, else a vector: the address as the program sees it (an offset in shared and
        local space)."""
        return self.made()[0]

    @property
    def narrow(self) -> str:
        """A vector of addresses before it was extended from 32 bits, "" if there is none."""
        return self.made()[1]

    @property
    def size(self) -> int:
        """The bytes of an access that is tested by compiled code: a power of two, to which addresses are aligned."""
        assert self.bytes is not None
        return self.bytes

    @property
    def space_code(self) -> int:
        """PE_GENERIC ..."""
        return int(SPACES[self.space])

    @property
    def span(self) -> Span:
        """All that lanes whose addresses form a pattern touch."""
        assert self.shape is not None
        return Span(self.space, self.base, self.shape, self.size)

    @property
    def strong(self) -> bool:
        """Whether other threads may take part: made exactly as written, and every element at once."""
        return not STRONG.isdisjoint(self.op.mods.values())

    @property
    def at_once(self) -> bool:
        """Whether a lane's elements go to memory or come from it at once: programs count on it where they bypass the L1 cache."""
        return self.strong or not BYPASSING.isdisjoint(self.op.mods.values())

    @property
    def volatile(self) -> str:
        """The LLVM keyword of an access to many elements."""
        return "volatile " if self.strong else ""


# ---------------------------------------------------------------- addresses


def access(ctx: Context, op: Op, name: str, mask: str = "") -> Access:
    """The access at the operand of that name, by the lanes of ``mask`` (those in which ``op`` takes effect)."""
    stated = op.access_of(name)
    address, space, size = stated.address, stated.space, stated.bytes
    assert isinstance(address, Addr)
    shape, safe, base, narrow = ctx.shape(address), False, "", ""
    kind = int(KINDS[stated.stated.kind])
    if isinstance(address.base, SymRef):
        base = symbol_address(ctx, address.base, address.offset)
        safe = size is not None and _static(ctx, space, address, size)
    elif isinstance(address.base, Imm):
        base = str(address.base.bits + address.offset)
    elif ctx.is_grouped(address.base) and space != CLUSTER:
        lanes = partial(_computed, ctx, op, address, shape, space)
        return Access(op, kind, address, space, size, mask or ctx.mask_of(op), lanes, shape, grouped=True)
    else:
        base, narrow = _computed(ctx, op, address, shape, space)
        if space == CLUSTER:
            return _distributed(ctx, op, stated, mask or ctx.mask_of(op), base)
        safe = op in ctx.trusted or (op.row in IN_FRAME and size is not None and address.offset % size == 0)
    if space == CLUSTER:  # a variable, or a number
        space = "shared"
    return Access(op, kind, address, space, size, mask or ctx.mask_of(op), lambda: (base, narrow), shape, safe)


def _distributed(ctx: Context, op: Op, stated: MemoryAccess, mask: str, base: str) -> Access:
    """An access to shared memory of any CTA of the cluster: its generic address, which is that of no register."""
    shape = ctx.shape(stated.address)
    if shape is not None and not shape.uniform:
        base, shape = _lanes_of(ctx, stated.address, CLUSTER), None
    base = Windows(ctx, vector=shape is None).accessed(base)
    kind = int(KINDS[stated.stated.kind])
    return Access(op, kind, Addr(Imm(0, B64), 0), "generic", stated.bytes, mask, lambda: (base, ""), shape)


def is_half(base: object, space: str) -> bool:
    """Whether a register holds the low half of an address."""
    return isinstance(base, Reg) and base.type.bits == 32 and space in STARTS


def whole(ctx: Context, emitter: Emitter, half: str, space: str) -> str:
    """The 64-bit address in a window, or about it, that 32 bits are the low half of."""
    start = ctx.field(STARTS[space])
    if emitter is ctx.vector:
        start = ctx.splat("i64", start)
    distance = emitter.bin("sub", "i32", half, emitter.cast("trunc", "i64", start, "i32"))
    return emitter.bin("add", "i64", start, emitter.cast("sext", "i32", distance, "i64"))


def extended(ctx: Context, emitter: Emitter, value: str, kind: ScalarType, space: str) -> str:
    """What a register holds, as a 64-bit address."""
    if kind is B32 and space in STARTS:
        return whole(ctx, emitter, value, space)
    address = emitter.cast("zext", kind.llvm, value, "i64")
    ranked = space == "shared" and ctx.unit.ranked
    return Windows(ctx, vector=emitter is ctx.vector).stripped(address) if ranked else address


def scalar_base(ctx: Context, base: Reg, space: str) -> str:
    """A uniform or pattern base register as a 64-bit address."""
    kind = B64 if base.type.bits == 64 else B32
    return extended(ctx, ctx.scalar, ctx.scalar_of(base, kind), kind, space)


def _computed(ctx: Context, op: Op, address: Addr, shape: Shape | None, space: str) -> tuple[str, str]:
    """Register plus constant, extended to 64 bits (32-bit sums wrap, except where a test has ruled that out); and a vector
    before it was extended."""
    emitter = ctx.scalar if shape is not None else ctx.vector
    assert isinstance(address.base, Reg)
    if op in ctx.trusted:
        return ctx.scalar.bin("add", "i64", scalar_base(ctx, address.base, space), str(address.offset)), ""
    kind = B64 if address.base.type.bits == 64 else B32
    base = ctx.scalar_of(address.base, kind) if shape is not None else ctx.vector_of(address.base, kind)
    if address.offset:
        base = emitter.bin("add", kind.llvm, base, emitter.int(kind.bits, address.offset))
    narrow = kind is B32 and shape is None and not ctx.unit.ranked
    return extended(ctx, emitter, base, kind, space), base if narrow else ""


def group_addresses(ctx: Context, address: Addr, space: str) -> list[str]:
    """Where each group of lanes begins whose addresses have one base for each: scalar i64."""
    assert isinstance(address.base, Reg)
    kind = B64 if address.base.type.bits == 64 else B32
    bases = bases_of(ctx, address.base, kind)
    if address.offset:
        bases = [ctx.scalar.bin("add", kind.llvm, base, ctx.scalar.int(kind.bits, address.offset)) for base in bases]
    return [extended(ctx, ctx.scalar, base, kind, space) for base in bases]


def symbol_address(ctx: Context, symbol: SymRef, offset: int) -> str:
    """The address of a variable in its own space, as a scalar i64."""
    variable = symbol.symbol
    assert isinstance(variable, Variable)
    total = symbol.offset + offset
    layout = ctx.layout
    if variable in layout.shared:
        return str(layout.shared[variable] + total)
    if variable in layout.incoming:
        return ctx.scalar.bin("add", "i64", "%stack", str(layout.incoming[variable] + total))
    if variable in layout.local:
        return frame_address(ctx, layout.local[variable] + total)
    if variable in layout.params:
        field, start = "param_base", layout.params[variable]
    else:
        field = "const_base" if variable.space == "const" else "global_base"
        start = layout.module.offsets[variable]
    return ctx.scalar.bin("add", "i64", ctx.field(field), str(start + total))


def frame_address(ctx: Context, offset: int) -> str:
    """An address in the function's frame of local memory. functions/routines.py has seen to it that there is room."""
    if not ctx.layout.framed:
        return str(offset)
    return ctx.scalar.bin("add", "i64", _frame(ctx), str(offset))


def frame_end(ctx: Context) -> str:
    """Where the function's frame ends; the greatest number if that is beyond all addresses."""
    if not ctx.layout.framed:
        return str(ctx.layout.local_bytes)
    return ctx.scalar.intrinsic("uadd.sat", "i64", _frame(ctx), str(ctx.layout.local_bytes))


def _frame(ctx: Context) -> str:
    """The function's frame: behind its caller's stack, which may end anywhere (stackrestore)."""
    align = ctx.layout.local_align
    ctx.declare("llvm.uadd.sat.i64", "declare i64 @llvm.uadd.sat.i64(i64, i64)")
    past = ctx.once("frame.past", f"call i64 @llvm.uadd.sat.i64(i64 %stack, i64 {align - 1})")
    return ctx.once("frame", f"and i64 {past}, {-align}")


def _static(ctx: Context, space: str, address: Addr, size: int) -> bool:
    """A constant address inside a variable of known size needs no test."""
    assert isinstance(address.base, SymRef)
    variable = address.base.symbol
    if not isinstance(variable, Variable) or space == "generic" or space != variable.space:
        return False
    offset = address.base.offset + address.offset
    aligned = max(variable.align, 1) % size == 0 or variable in ctx.layout.shared or variable in ctx.layout.local
    placed = ctx.layout.shared.get(variable, ctx.layout.local.get(variable, 0))
    return offset >= 0 and offset + size <= variable.size and aligned and (placed + offset) % size == 0


# ---------------------------------------------------------------- tests


def _rotated(ctx: Context, value: str, size: int) -> str:
    """Rotate right by log2(size): a misaligned offset becomes huge, so one compare tests alignment and range."""
    if size == 1:
        return value
    return ctx.scalar.intrinsic("fshr", "i64", value, value, ctx.scalar.int(64, size.bit_length() - 1))


def _room(ctx: Context, kept: Range, span: int, size: int) -> str:
    """How many ``size``-byte units of a range may start an access that covers ``span`` more bytes."""
    room = ctx.scalar.intrinsic("usub.sat", "i64", kept.size, str(span + size - 1))
    return ctx.scalar.bin("lshr", "i64", ctx.scalar.bin("add", "i64", room, str(size - 1)), str(size.bit_length() - 1))


def _limit(ctx: Context, space: str, span: int, size: int) -> str:
    """How many ``size``-byte units may start an access that covers ``span`` more bytes; kept in the entry block."""
    if space in NOTED:
        return arena_limit(ctx, size)
    shift = size.bit_length() - 1
    window = ctx.field(WINDOWS[space])
    key = f"{space}-{span}-{size}"
    ctx.declare("llvm.usub.sat.i64", "declare i64 @llvm.usub.sat.i64(i64, i64)")
    room = ctx.once(key + "r", f"call i64 @llvm.usub.sat.i64(i64 {window}, i64 {span + size - 1})")
    up = ctx.once(key + "u", f"add i64 {room}, {size - 1}")
    return ctx.once(key, f"lshr i64 {up}, {shift}")


def arena_limit(ctx: Context, size: int) -> str:
    """How many ``size``-byte units device memory has."""
    shift = size.bit_length() - 1
    return ctx.once(f"arena>>{shift}", f"lshr i64 {ctx.field('arena_size')}, {shift}")


def _start(ctx: Context, space: str) -> str:
    """Where what the range test is about starts."""
    field = {"generic": "arena_base", "global": "arena_base", **STARTS}.get(space)
    return ctx.field(field) if field else "0"


def is_below(ctx: Context, space: str, place: str, limit: str, size: int) -> str:
    """i1: an address is aligned, and fewer units of ``size`` bytes from the start of its space than a limit."""
    start = ctx.scalar.bin("sub", "i64", place, _start(ctx, space))
    return ctx.scalar.icmp("ult", "i64", _rotated(ctx, start, size), limit)


def pattern_test(ctx: Context, found: Span, kept: Range | None = None) -> str:
    """i1: the whole pattern is aligned and in range (lanes that are off included), in its space or in a range of it."""
    shape = found.shape
    low, high = shape.spread
    start = ctx.scalar.bin("sub", "i64", found.base, kept.first if kept else _start(ctx, found.space))
    exact = found.space in WINDOWS or kept is not None
    if exact and low:
        start = ctx.scalar.bin("add", "i64", start, str(low))
    span = high - low if exact else 0
    limit = _room(ctx, kept, span, found.size) if kept else _limit(ctx, found.space, span, found.size)
    good = ctx.scalar.icmp("ult", "i64", _rotated(ctx, start, found.size), limit)
    if shape.widenings:
        fine = ctx.scalar.bin("xor", "i1", ctx.wrapped(), "true")
        good = ctx.scalar.bin("and", "i1", good, fine)
    return good


def failing(ctx: Context, found: Access, addresses: Callable[[], str], kept: Range | None = None) -> str:
    """i32: the active lanes whose address is misaligned or out of range, of its space or of a range of it.

    ``addresses`` makes the vector of them, which the narrow ones may do without.
    """
    shift = found.size.bit_length() - 1
    limit = _room(ctx, kept, 0, found.size) if kept else _limit(ctx, found.space, 0, found.size)
    if kept:
        wild = outside(ctx, addresses(), kept.first, limit, shift)
    elif found.narrow and _start(ctx, found.space) == "0":
        limit = ctx.once(f"narrow {limit}", f"trunc i64 {limit} to i32")
        wild = beyond(ctx, "i32", found.narrow, limit, shift)
    else:
        wild = outside(ctx, addresses(), _start(ctx, found.space), limit, shift)
    return ctx.scalar.bin("and", f"i{LANES}", ctx.bits_of(found.mask), wild)


def address_of(ctx: Context, addresses: str, lane: int) -> str:
    """That of one lane, an i64, among those of all."""
    return ctx.inst(f"extractelement {ctx.vector.ty('i64')} {addresses}, i64 {lane}")


def pointer_of(ctx: Context, addresses: str, lane: int) -> str:
    """The same as a pointer."""
    return ctx.inst(f"inttoptr i64 {address_of(ctx, addresses, lane)} to ptr")


def outside_memory(ctx: Context, addresses: str, size: int, kept: Range | None = None, span: int = 0) -> str:
    """i32: the lanes at whose address no word of a size, and so many bytes behind it, are in device memory, or a range of it; or
    that are not aligned."""
    start, limit = (
        (kept.first, _room(ctx, kept, span, size)) if kept else (_start(ctx, "global"), _limit(ctx, "global", span, size))
    )
    return outside(ctx, addresses, start, limit, size.bit_length() - 1)


def verify(ctx: Context, found: Access, addresses: str) -> None:
    """Test every active lane of a vector of addresses; the runtime raises the fault."""
    failed = ctx.scalar.icmp("ne", f"i{LANES}", failing(ctx, found, lambda: addresses), "0")
    ctx.leave_if(failed, lambda: refuse(ctx, found, ctx.in_memory("i64", addresses)))


def check(ctx: Context, found: Access, addresses: str) -> None:
    """The runtime's exact test of every active lane's address; ``addresses`` are in memory."""
    _ask(ctx, "pe_check", "cold", found, addresses)


def refuse(ctx: Context, found: Access, addresses: str) -> None:
    """The same where the test of compiled code is exact, too, and has failed: this does not return."""
    _ask(ctx, "pe_refuse_lanes", "cold noreturn", found, addresses)


def _ask(ctx: Context, name: str, attributes: str, found: Access, addresses: str) -> None:
    with trips.noted(ctx):
        ctx.call(
            "void", name, ("ptr", "%w"), ("i32", ctx.position(found.op)), ("i32", str(found.space_code)),
            ("i32", str(found.size)), ("i32", ctx.bits_of(found.mask)), ("ptr", addresses), attributes=attributes,
        )  # fmt: skip


def assure(ctx: Context, found: Access) -> None:
    """Test a uniform access; the runtime raises the fault, unless no lane is on, or the test has failed for another reason."""
    assert found.shape is not None
    bad = ctx.scalar.bin("xor", "i1", pattern_test(ctx, found.span), "true")
    if found.op.guard is None and not found.shape.widenings and not tells_accesses(ctx.unit.observed):
        ctx.leave_if(bad, lambda: refuse(ctx, found, stored_addresses(ctx, found)))
        return

    def examine() -> list[str]:
        check(ctx, found, stored_addresses(ctx, found))
        return []

    ctx.when(bad, examine, None, [], likely=False)


def note_position(ctx: Context, op: Op, space: str = "generic") -> None:
    """Leave position and space for the fault handler: an access in the arena may hit an unmapped page."""
    offset, _ = ctx.layout.warp_field("pos")
    pointer = ctx.once("pos", f"getelementptr i8, ptr %w, i64 {offset}")
    if ctx.noted_space == space:
        ctx.stmt(f"store volatile i32 {ctx.position(op)}, ptr {pointer}, align 4")
    else:
        ctx.stmt(f"store volatile i64 {ctx.position(op, SPACES[space])}, ptr {pointer}, align 4")
        ctx.noted_space = space


# ---------------------------------------------------------------- address forms


def vector_addresses(ctx: Context, found: Access) -> str:
    """All lanes' addresses as the program sees them."""
    if found.shape is None:
        return found.base
    if isinstance(found.address.base, Reg) and any(found.shape.offsets):
        return _lanes_of(ctx, found.address, found.space)
    value = ctx.splat("i64", found.base)
    return ctx.vector.bin("add", "i64", value, offsets_literal(found.shape.offsets, "i64"))


def _lanes_of(ctx: Context, address: Addr, space: str) -> str:
    """A register plus a constant in every lane, extended to 64 bits."""
    assert isinstance(address.base, Reg)
    kind = B64 if address.base.type.bits == 64 else B32
    value = ctx.vector_of(address.base, kind)
    if address.offset:
        value = ctx.vector.bin("add", kind.llvm, value, ctx.vector.int(kind.bits, address.offset))
    return extended(ctx, ctx.vector, value, kind, space)


def operand_addresses(ctx: Context, address: Addr, space: str) -> str:
    """The same of an operand that is no access."""
    if isinstance(address.base, Reg):
        return _lanes_of(ctx, address, space)
    if isinstance(address.base, SymRef):
        return ctx.splat("i64", symbol_address(ctx, address.base, address.offset))
    return ctx.vector.int(64, address.base.bits + address.offset)


def physical_lanes(ctx: Context, found: Access, addresses: str) -> str:
    """Host addresses of all lanes."""
    if found.space == "shared":
        return ctx.vector.bin("add", "i64", addresses, ctx.splat("i64", ctx.field("shared_base")))
    if found.space == "local":
        return ctx.vector.bin("add", "i64", addresses, local_bases(ctx))
    return addresses


def checked_lanes(ctx: Context, found: Access) -> tuple[str, str]:
    """Host addresses of the lanes of a pattern, not local, after the runtime's test: their place in memory, and what is to be
    added to each. All this is out of line."""
    addresses = stored_addresses(ctx, found)
    if not found.safe:
        check(ctx, found, addresses)
    return addresses, ctx.field("shared_base") if found.space == "shared" else "0"


def stored_addresses(ctx: Context, found: Access) -> str:
    """All lanes' addresses as the program sees them, in memory."""
    base = found.address.base
    if found.grouped and isinstance(base, Reg) and base.type.bits == B64.bits:
        shape = ctx.groups[base]
        place = ctx.spill("i64", lanes_of(ctx, "i64", group_addresses(ctx, found.address, found.space), shape.offsets))
        for widening, factor in shape.widenings:
            ctx.correct(place, widening, factor)
        return place
    if found.shape is None or is_half(found.address.base, found.space):
        return ctx.in_memory("i64", vector_addresses(ctx, found))
    kind = "i32" if isinstance(found.address.base, Reg) and found.address.base.type.bits == 32 else "i64"
    place = ctx.temporary(WORD)
    ctx.call("void", f"pe_spread_{kind[1:]}", ("ptr", place), ("i64", found.base), ("ptr", ctx.lane_offsets(found.shape, kind)))
    for widening, factor in found.shape.widenings:
        ctx.correct(place, widening, factor)
    return place


def tested_lanes(ctx: Context, found: Access, rare: bool) -> tuple[str, str]:
    """Host addresses of all lanes after the test: inline, or by the runtime where a pattern's own test has failed. In shared
    memory offsets, and where they start."""
    addresses = vector_addresses(ctx, found)
    if rare and not found.safe:
        check(ctx, found, ctx.in_memory("i64", addresses))
    elif not found.safe and found.shape is not None and found.shape.uniform:
        assure(ctx, found)
    elif not found.safe:
        verify(ctx, found, addresses)
    if found.space == "shared":
        return addresses, ctx.field("shared_base")
    return physical_lanes(ctx, found, addresses), "0"


def local_bases(ctx: Context) -> str:
    """The address of every lane's local window."""

    def everywhere(key: str, value: str) -> str:
        first = ctx.once(f"{key}.first", f"insertelement {WORD} poison, i64 {value}, i64 0")
        return ctx.once(f"{key}.all", f"shufflevector {WORD} {first}, {WORD} poison, <{LANES} x i32> zeroinitializer")

    size, base = everywhere("local.size", ctx.field("local_size")), everywhere("local.base", ctx.field("local_base"))
    strides = ctx.once("local.strides", f"mul {WORD} {size}, {offsets_literal(range(LANES), 'i64')}")
    return ctx.once("local.bases", f"add {WORD} {strides}, {base}")


def host_pointer(ctx: Context, found: Access, offset: int) -> str:
    """A host pointer ``offset`` bytes past the base of a uniform or pattern access."""
    address = found.base
    if found.space == "shared":
        address = ctx.scalar.bin("add", "i64", address, ctx.field("shared_base"))
    pointer = ctx.inst(f"inttoptr i64 {address} to ptr")
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer


def contiguous(shape: Shape, step: int) -> bool:
    return shape.offsets == tuple(range(shape.offsets[0], shape.offsets[0] + LANES * step, step))

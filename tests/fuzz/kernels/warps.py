"""Threads of random kernels together: warp instructions, barriers, exchanges in shared memory, waiting for each other."""

from __future__ import annotations

from tests.fuzz.kernels.memory import CHAIN, FLAGS, PHASE, SHARED, SLOTS, WORDS_BYTES
from tests.fuzz.kernels.writer import (
    Scope,
    Writer,
    by_every_block,
    in_step,
    members_of,
    statement,
    together,
    whole_warps,
    with_members,
)

BARRIERS = ("bar.sync 0;", "barrier.sync 1;", "barrier.sync.aligned 2;")
SAME_BARRIER = ("bar.sync 0;", "barrier.sync 0;", "barrier.cta.sync.aligned 0;")
# shape and types, and how many registers D, A, B and C take
MMA = [
    ("m16n8k8.row.col.f32.f16.f16.f32", 4, 2, 1, 4), ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2, 4),
    ("m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2, 2), ("m16n8k32.row.col.s32.s8.u8.s32", 4, 4, 2, 4),
    ("m8n8k16.row.col.s32.u8.s8.s32", 2, 1, 1, 2), ("m8n8k16.row.col.satfinite.s32.s8.s8.s32", 2, 1, 1, 2),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2, 4),
]  # fmt: skip


# ---------------------------------------------------------------- warp instructions


@statement(7, with_members)
def collective(w: Writer, scope: Scope, depth: int) -> None:
    vote(w, members_of(scope), "")


@statement(3, with_members)
def guarded_collective(w: Writer, scope: Scope, depth: int) -> None:
    """Of the lanes whose guard holds."""
    condition = w.condition()
    w.emit(f"vote.sync.ballot.b32 %k0, {condition}, {members_of(scope)};")
    vote(w, "%k0", f"@{condition} ")


def vote(w: Writer, members: str, guard: str) -> None:
    kind = w.random.randrange(8)
    if kind == 0:
        condition = w.condition()
        w.emit(f"{guard}vote.sync.ballot.b32 {w.register()}, {condition}, {members};")
    elif kind == 1:
        condition, result = w.condition(), f"%p{w.fresh()}"
        w.emit(f"mov.pred {result}, 0; {guard}vote.sync.{w.pick('all', 'any', 'uni')}.pred {result}, {condition}, {members};")
        w.emit(f"selp.b32 {w.register()}, 5, 9, {result};")
    elif kind == 2:
        operation = w.pick("add.u32", "min.s32", "max.u32", "xor.b32", "and.b32", "or.b32", "max.s32")
        w.emit(f"{guard}redux.sync.{operation} {w.register()}, {w.register()}, {members};")
    elif kind == 3:
        w.emit(f"and.b32 %x1, {w.register()}, 3; {guard}match.any.sync.b32 {w.register()}, %x1, {members};")
    elif kind == 4:
        w.emit(f"{guard}match.all.sync.b32 {w.register()}|{w.predicate()}, {w.register()}, {members};")
    elif kind == 5:
        w.emit(f"{guard}elect.sync {w.register()}|{w.predicate()}, {members};")
    elif kind == 6 and members != "-1":  # from the first of them
        w.emit(f"brev.b32 %x1, {members}; clz.b32 %x1, %x1; "
               f"{guard}shfl.sync.idx.b32 {w.register()}, {w.register()}, %x1, 31, {members};")  # fmt: skip
    else:
        w.emit(f"{guard}bar.warp.sync {members};")


@statement(4, whole_warps)
def shuffle(w: Writer, scope: Scope, depth: int) -> None:
    """Only where every lane is there: what an absent one gives is not defined."""
    mode, number = w.pick("idx", "up", "down", "bfly"), w.fresh()
    amount = w.random.choice([str(w.random.randrange(32)), w.register()])
    control = {"up": "0"}.get(mode, w.pick("31", "0x181f"))
    w.emit(f"shfl.sync.{mode}.b32 {w.register()}|%p{number}, {w.register()}, {amount}, {control}, -1;")
    w.emit(f"selp.b32 {w.register()}, {w.register()}, {w.register()}, %p{number};")


# ---------------------------------------------------------------- barriers


def put(w: Writer) -> None:
    """A word of each thread."""
    w.use_shared(WORDS_BYTES)
    w.emit(f"shl.b32 %x1, %t2, 2; mov.u32 %x3, words; add.u32 %x1, %x1, %x3; st.shared.u32 [%x1], {w.register()};")


def take(w: Writer) -> None:
    """The word of another thread of the block."""
    source = w.pick(
        "xor.b32 %x2, %t2, 1;", "add.u32 %x2, %t2, 5;", f"and.b32 %x2, {w.register()}, 127;", "sub.u32 %x2, 127, %t2;"
    )
    w.emit(f"{source} and.b32 %x2, %x2, 127; shl.b32 %x2, %x2, 2; add.u32 %x2, %x2, %x3;")
    w.emit(f"ld.shared.u32 {w.register()}, [%x2];")


def barrier_of(w: Writer) -> str:
    """A barrier of the whole block; in some programs it is always the same one."""
    return w.pick(*(SAME_BARRIER if "one barrier" in w.features else BARRIERS))


@statement(4, together)
def exchange(w: Writer, scope: Scope, depth: int) -> None:
    barrier = barrier_of(w)
    put(w)
    w.emit(barrier)
    take(w)
    w.emit(barrier)


@statement(1, together)
def guarded_barrier(w: Writer, scope: Scope, depth: int) -> None:
    w.emit(f"@{w.condition(uniform=True)} {barrier_of(w)}")


@statement(2, together)
def vote_barrier(w: Writer, scope: Scope, depth: int) -> None:
    if "one barrier" in w.features:
        return
    condition = w.condition()
    if w.chance(0.5):
        w.emit(f"bar.red.popc.u32 {w.register()}, 3, {condition};")
    else:
        result = f"%p{w.fresh()}"
        w.emit(f"bar.red.{w.pick('and', 'or')}.pred {result}, 3, {condition};")
        w.emit(f"selp.b32 {w.register()}, 1, 0, {result};")


@statement(3, in_step, "barriers")
def producers(w: Writer, scope: Scope, depth: int) -> None:
    """The first warp waits for the others, which arrive and go on."""
    warps = -(-w.threads // 32)
    number = w.fresh()
    put(w)
    w.emit(f"shr.u32 %x0, %t2, 5; setp.eq.u32 %p{number}, %x0, 0; @%p{number} bra first{number};")
    w.emit(f"bar.arrive 4, {32 * warps}; bra both{number};")
    w.label(f"first{number}")
    w.emit(f"bar.sync 4, {32 * warps};")
    take(w)
    w.label(f"both{number}")
    w.emit("bar.sync 0;")


@statement(5, in_step, "barriers")
def phases(w: Writer, scope: Scope, depth: int) -> None:
    """An mbarrier at which all threads of the block arrive, and for whose phase they wait in a loop."""
    w.use_shared(SLOTS)
    number, wait = w.fresh(), w.pick("test_wait", "try_wait")
    put(w)
    if w.chance(0.5):
        w.emit(f"mov.u32 %x2, words; mbarrier.arrive.shared.b64 %a1, [%x2+{PHASE}];")
        waited = f"mbarrier.{wait}.shared.b64 %p{number}, [%x2+{PHASE}], %a1;"
    else:
        w.emit(f"mov.u32 %x2, words; mbarrier.arrive.shared.b64 _, [%x2+{PHASE}]; and.b32 %x0, %phase, 1;")
        waited = f"mbarrier.{wait}.parity.shared.b64 %p{number}, [%x2+{PHASE}], %x0;"
    w.label(f"wait{number}")
    w.emit(f"{waited} @!%p{number} bra wait{number};")
    w.emit("add.u32 %phase, %phase, 1;")
    take(w)
    w.emit("bar.sync 0;")


# ---------------------------------------------------------------- spin loops


@statement(4, in_step, "flags")
def warp_after_warp(w: Writer, scope: Scope, depth: int) -> None:
    """Each warp waits for a flag of the one before it, and reads what that has written."""
    w.use_shared(SLOTS)
    number, spin = w.fresh(), w.fresh()
    put(w)
    w.emit("add.u32 %round, %round, 1; shr.u32 %x0, %t2, 5; shl.b32 %x1, %x0, 2; add.u32 %x1, %x1, %x3;")
    w.emit(f"setp.eq.u32 %p{number}, %x0, 0; @%p{number} bra first{number};")
    if w.chance(0.3):  # one lane for all
        w.emit(f"and.b32 %x2, %t2, 31; setp.ne.u32 %p{spin}, %x2, 0; @%p{spin} bra elected{number};")
    w.label(f"spin{number}")
    load = w.pick("ld.volatile.shared.u32", "ld.acquire.cta.shared.u32", "atom.shared.or.b32")
    w.emit(f"{load} %x2, [%x1+{FLAGS - 4}]{', 0' if load.startswith('atom') else ''};")
    w.emit(f"setp.lt.u32 %p{spin}, %x2, %round; {w.pick('', 'nanosleep.u32 10; ')}@%p{spin} bra spin{number};")
    w.label(f"elected{number}")
    w.emit("bar.warp.sync -1; sub.u32 %x2, %t2, 32; shl.b32 %x2, %x2, 2; add.u32 %x2, %x2, %x3;")
    w.emit(f"ld.shared.u32 {w.register()}, [%x2];")
    w.label(f"first{number}")
    w.emit(f"bar.warp.sync -1; membar.cta; st.volatile.shared.u32 [%x1+{FLAGS}], %round;")
    w.emit("bar.sync 0;")


@statement(4, by_every_block, "flags")
def block_after_block(w: Writer, scope: Scope, depth: int) -> None:
    """Each block waits for a flag of the one before it."""
    number, spin = w.fresh(), w.fresh()
    w.emit("add.u32 %step, %step, 1; mov.u32 %x0, %ctaid.x; mov.u32 %x1, %ctaid.y; mov.u32 %x2, %nctaid.x;")
    w.emit("mad.lo.u32 %x0, %x1, %x2, %x0; mul.wide.u32 %a1, %x0, 4; add.u64 %a1, %a1, %sums;")
    w.emit(f"setp.eq.u32 %p{number}, %x0, 0; @%p{number} bra first{number};")
    w.label(f"spin{number}")
    w.emit(f"{w.pick('ld.volatile', 'ld.acquire.gpu')}.global.u32 %x2, [%a1+{4 * CHAIN - 4}];")
    w.emit(f"setp.lt.u32 %p{spin}, %x2, %step; @%p{spin} bra spin{number};")
    w.label(f"first{number}")
    w.emit(f"bar.sync 0; membar.gl; st.volatile.global.u32 [%a1+{4 * CHAIN}], %step;")


# ---------------------------------------------------------------- matrices


def fragment(w: Writer, count: int, distinct: bool = False) -> str:
    registers = w.random.sample(range(10), count) if distinct else [w.random.randrange(10) for _ in range(count)]
    return "{" + ", ".join(f"%r{register}" for register in registers) + "}"


@statement(5, whole_warps, "matrices")
def multiply(w: Writer, scope: Scope, depth: int) -> None:
    shape, *counts = w.random.choice(MMA)
    d, a, b, c = (fragment(w, count, index == 0) for index, count in enumerate(counts))
    w.emit(f"mma.sync.aligned.{shape} {d}, {a}, {b}, {c};")


@statement(5, whole_warps, "matrices")
def rows(w: Writer, scope: Scope, depth: int) -> None:
    """Matrices of the block's words, or of each warp's slots; a transposition in registers."""
    kind, count = w.random.randrange(4), w.random.choice([1, 2, 4])
    transposed = w.pick("", ".trans")
    if kind == 0:
        w.emit(f"movmatrix.sync.aligned.m8n8.trans.b16 {w.register()}, {w.register()};")
        return
    if kind == 1:
        put(w)
        w.emit("bar.sync 0; and.b32 %x2, %t2, 31; shl.b32 %x2, %x2, 4; add.u32 %x2, %x2, %x3;")
        w.emit(f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 {fragment(w, count, True)}, [%x2]; bar.sync 0;")
        return
    w.use_shared(SHARED)
    w.emit("shl.b32 %x2, %t2, 4; mov.u32 %x3, words; add.u32 %x2, %x2, %x3;")
    if kind == 2:
        w.emit(f"stmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 [%x2+{SLOTS}], {fragment(w, count)};")
        w.emit(f"bar.warp.sync -1; ld.shared.u32 {w.register()}, [%x2+{SLOTS}]; bar.warp.sync -1;")
    else:
        w.emit(f"shr.u32 %x1, %t2, 5; shl.b32 %x1, %x1, 9; add.u32 %x1, %x1, %x3; st.shared.u32 [%x2+{SLOTS}], {w.register()};")
        w.emit(f"bar.warp.sync -1; wmma.load.c.sync.aligned.{w.pick('row', 'col')}.m8n32k16.shared.f16 "
               f"{fragment(w, 4, True)}, [%x1+{SLOTS}]; bar.warp.sync -1;")  # fmt: skip

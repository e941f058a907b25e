"""Memory of random kernels: loads from the input and from tables, stores to what is the thread's own, local arrays, atomics."""

from __future__ import annotations

from tests.fuzz.kernels.writer import COMPARE, PLACES, Scope, Writer, anywhere, in_kernels, statement

REDUCE = ["add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32"]
REDUCE_WIDE = ["add.u64", "max.s64", "xor.b64"]
TALLY = {0: "add.u32", 4: "max.u32", 8: "or.b32", 12: "xor.b32", 16: "min.s32", 20: "inc.u32", 24: "add.u64"}  # by offset
SUMS = len(REDUCE)
LOCK, CHAIN, SWAPPED, WIDE_SUMS, FLOAT_SUM = 8, 10, 14, 16, 24  # words of the common results, behind the sums
COMMON = 32
WORDS_BYTES, TALLIES, FLAGS, PHASE, SLOTS, SHARED = 512, 512, 576, 592, 1024, 3072  # of shared memory
CONTENDERS = [(0, 4), (0, 12), (28, 8)]  # threads of a block that want the lock: the first, and how many; of one warp or two
KEPT = 32  # bytes of local memory
TABLE = [0x9E3779B1 * index & 0xFFFFFFFF for index in range(16)]


def index(w: Writer) -> str:
    """A register with an index of the input: a pattern of the thread's place, or anything."""
    start, bits = w.random.randrange(500), w.random.choice([2, 3, 4])
    rows = (
        f"shr.u32 %x3, %t0, {bits}; add.u32 %x2, %u{w.random.randrange(2)}, {w.random.randrange(20)}; mul.lo.u32 %x3, %x3, %x2;"
    )
    texts = [
        f"{rows} and.b32 %x2, %t0, {(1 << bits) - 1}; add.u32 %x2, %x2, %x3;", f"{rows} add.u32 %x2, %x3, {start};",
        f"add.u32 %x2, %t0, {start};", f"mad.lo.u32 %x2, %t0, {w.random.choice([2, 3, 4, 8])}, {start};",
        f"shr.u32 %x2, %t0, {w.random.randrange(4)}; add.u32 %x2, %x2, {start};", f"sub.u32 %x2, {start + 300}, %t0;",
        f"add.u32 %x2, %t1, {start};", f"and.b32 %x2, {w.register()}, {w.random.choice([0x7FF, 0x7F0, 0xF])};",
        f"add.u32 %x2, {w.register()}, %t0; and.b32 %x2, %x2, 0x7ff;",
    ]  # fmt: skip
    w.emit(w.random.choice(texts))
    return "%x2"


def address(w: Writer, base: str, index: str, size: int) -> str:
    """The address of an element, in one of the ways in which compilers write it."""
    kind = w.random.randrange(4)
    if kind == 0:
        w.emit(f"mul.wide.u32 %a0, {index}, {size}; add.u64 %a0, %a0, {base};")
    elif kind == 1:
        w.emit(f"cvt.u64.u32 %a0, {index}; mad.lo.u64 %a0, %a0, {size}, {base};")
    elif kind == 2:
        w.emit(f"mul.wide.s32 %a0, {index}, {size}; add.s64 %a0, {base}, %a0;")
    else:
        w.emit(f"shl.b32 %x3, {index}, {size.bit_length() - 1}; cvt.u64.u32 %a0, %x3; add.u64 %a0, {base}, %a0;")
    return "%a0"


@statement(10, in_kernels)
def load(w: Writer, scope: Scope, depth: int) -> None:
    kind = w.random.random()
    space = w.pick(".global", ".global", "")
    guard = w.guard()
    at = address(w, "%in", index(w), 4)
    offset = w.pick("", "", "+4", "+64")
    if kind < 0.5:
        w.emit(f"{guard}ld{space}.{w.pick('u32', 'b32', 's32')} {w.register()}, [{at}{offset}];")
    elif kind < 0.65:
        w.emit(f"{guard}ld{space}.{w.pick('u8', 's8', 'u16', 's16')} {w.register()}, [{at}{offset}];")
    elif kind < 0.8:
        w.emit(f"and.b64 {at}, {at}, -8; {guard}ld{space}.v2.u32 {{{w.register()}, %x1}}, [{at}];")
    elif kind < 0.85:
        w.emit(f"and.b64 {at}, {at}, -16; {guard}ld{space}.v4.b32 {{%x0, {w.register()}, %x1, %f0}}, [{at}];")
    elif kind < 0.9:
        w.emit(f"and.b64 {at}, {at}, -8; {guard}ld{space}.b64 {w.wide()}, [{at}];")
    else:
        w.emit(f"{guard}ld{space}.f32 {w.float()}, [{at}{offset}];")


@statement(4, in_kernels)
def tile(w: Writer, scope: Scope, depth: int) -> None:
    """Rows that lie apart, several to a warp, of which some rows or columns are read."""
    number, bits = w.fresh(), w.random.choice([2, 3, 4, 4])
    w.emit(f"shr.u32 %x0, %t2, {bits}; and.b32 %x1, %t2, {(1 << bits) - 1};")
    w.emit(w.pick("and.b32 %x2, %x0, 1;", "and.b32 %x2, %x0, 3;", "and.b32 %x2, %t2, 16;", "mov.u32 %x2, %x1;"))
    w.emit(f"setp.{w.random.choice(COMPARE)}.u32 %p{number}, %x2, {w.random.randrange(3)};")
    w.emit(f"mad.lo.u32 %x2, %x0, {(1 << bits) + w.random.randrange(20)}, %x1;")
    w.emit(f"@%p{number} ld{w.pick('.global', '')}.u32 {w.register()}, [{address(w, '%in', '%x2', 4)}];")


@statement(4, in_kernels)
def before_the_start(w: Writer, scope: Scope, depth: int) -> None:
    """An index that is negative in some threads, as a signed number or as one that has wrapped around."""
    shift, number = w.random.choice([1, 3, 16, 40]), w.fresh()
    w.emit(f"sub.u32 %x2, {w.pick('%t0', '%t2', w.register())}, {shift};")
    if w.chance(0.5):
        w.emit("and.b32 %x2, %x2, 0x800007ff; " * w.chance(0.3) + f"setp.lt.u32 %p{number}, %x2, 2000;")
        w.emit(f"@%p{number} ld.global.u32 {w.register()}, [{address(w, '%in', '%x2', 4)}];")
    else:
        w.emit(f"max.s32 %x2, %x2, -{shift}; min.s32 %x2, %x2, 2000; mul.wide.s32 %a0, %x2, 4; add.s64 %a0, %a0, %in;")
        w.emit(f"{w.guard()}ld.global.u32 {w.register()}, [%a0+{4 * shift}];")


@statement(2, in_kernels)
def narrowed(w: Writer, scope: Scope, depth: int) -> None:
    """An index in a register that is wider than the type of a conversion: what is cut off differs in some threads."""
    before, number = w.random.choice([1, 3, 16, 40]), w.fresh()
    if w.chance(0.5):
        w.emit(f"sub.u32 %x2, {w.pick('%t0', '%t2')}, {before}; cvt.u16.u16 %x2, %x2; setp.lt.u32 %p{number}, %x2, 2000;")
        at = address(w, "%in", "%x2", 4)
    else:
        w.emit(
            f"cvt.u64.u32 %a1, {w.pick('%t0', '%t2')}; sub.u64 %a1, %a1, {before}; cvt.{w.pick('u64.u32', 'u32.u64')} %a1, %a1;"
        )
        w.emit(f"setp.lt.u64 %p{number}, %a1, 2000; shl.b64 %a0, %a1, 2; add.u64 %a0, %a0, %in;")
        at = "%a0"
    w.emit(f"@%p{number} ld.global.u32 {w.register()}, [{at}];")


@statement(4, in_kernels)
def walk(w: Writer, scope: Scope, depth: int) -> None:
    """Every lane goes through the input by steps: an address or an index is carried from turn to turn."""
    number, stride, turns = w.fresh(), w.random.choice([1, 4, 32, 97]), w.random.randrange(2, 6)
    pointer = w.chance(0.5)
    w.emit(f"mov.u32 %c{number}, {turns}; add.u32 %m{number}, {w.pick('%t0', '%t1')}, {w.random.randrange(100)};")
    if pointer:
        w.emit(f"mul.wide.u32 %w{number}, %m{number}, 4; add.u64 %w{number}, %w{number}, %in;")
    w.label(f"walk{number}")
    if not pointer:
        w.emit(f"mul.wide.{w.pick('u32', 's32')} %w{number}, %m{number}, 4; add.u64 %w{number}, %w{number}, %in;")
    w.emit(f"{w.guard()}ld.global.u32 {w.register()}, [%w{number}+{4 * w.random.randrange(8)}];")
    advance = f"add.u64 %w{number}, %w{number}, {4 * stride};" if pointer else f"add.u32 %m{number}, %m{number}, {stride};"
    w.emit(f"{w.guard(0.3)}{advance}")
    w.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.gt.s32 %p{number}, %c{number}, 0; @%p{number} bra walk{number};")


@statement(5, in_kernels)
def strides(w: Writer, scope: Scope, depth: int) -> None:
    """All threads go through the input together, each by the number of those in a row of the grid."""
    number, most = w.fresh(), w.random.choice([1, 3, 9, 12, 19])
    w.emit(f"mov.u32 %x0, %ntid.x; mov.u32 %x1, %nctaid.x; mul.lo.u32 %n{number}, %x0, %x1;")
    w.emit(f"mov.u32 %m{number}, {w.pick('%t0', '%t1')};")
    w.emit(f"mad.lo.u32 %c{number}, %n{number}, {most}, {w.random.randrange(50)}; min.u32 %c{number}, %c{number}, 4000;")
    w.label(f"stride{number}")
    w.emit(f"setp.ge.u32 %p{number}, %m{number}, %c{number}; @%p{number} bra past{number};")
    for _ in range(w.random.randrange(1, 3)):
        register = w.register()
        w.emit(f"ld.global.u32 %x2, [{address(w, '%in', f'%m{number}', 4)}];")
        w.emit(f"{w.guard(0.2)}xor.b32 {register}, {register}, %x2;")
    for _ in range(w.random.randrange(0, 3)):
        local(w, Scope(False), depth)  # of a warp that gives way to others, which have their own
    w.statements(w.random.randrange(0, 3), Scope(False), depth + 2)
    w.emit(f"add.u32 %m{number}, %m{number}, %n{number}; bra stride{number};")
    w.label(f"past{number}")


@statement(4, in_kernels)
def row(w: Writer, scope: Scope, depth: int) -> None:
    """Every lane goes through a row of its own, with the same step, which some leave earlier."""
    number, size = w.fresh(), w.random.choice([1, 2, 4])
    w.emit(f"and.b32 %c{number}, {w.register()}, {w.random.choice([3, 7, 15])}; and.b32 %m{number}, {w.register()}, 0x3ff;")
    w.emit(f"mul.wide.u32 %w{number}, %m{number}, 4; add.u64 %w{number}, %w{number}, %in;")
    if w.chance(0.5):
        w.emit(f"setp.eq.u32 %p{number}, %c{number}, 0; @%p{number} bra end{number};")
    w.label(f"row{number}")
    for part in range(size):
        w.emit(f"ld{w.pick('.global', '')}.{w.pick('u32', 'u32', 's16', 'u8')} %x2, [%w{number}+{4 * part}];")
        for _ in range(w.random.randrange(1, 3)):
            register = w.register()
            w.emit(f"{w.guard(0.2)}{w.pick('add.u32', 'xor.b32', 'max.s32', 'sub.u32')} {register}, {register}, %x2;")
    if w.chance(0.4):
        w.emit("and.b32 %x2, %x2, 1023;")
        w.emit(f"{w.guard(0.3)}ld.global.u32 {w.register()}, [{address(w, '%in', '%x2', 4)}];")
    if w.chance(0.3):
        float = w.float()
        w.emit(f"ld.global.f32 %f0, [%w{number}]; {w.pick('add', 'mul', 'min')}.f32 {float}, {float}, %f0;")
    if w.chance(0.3):
        w.emit(f"@{w.condition()} bra end{number};")
    elif w.chance(0.3):
        w.emit(f"@{w.condition()} bra over{number}; xor.b32 {w.register()}, {w.register()}, 5;")
        w.label(f"over{number}")
    w.emit(f"add.u64 %w{number}, %w{number}, {4 * size};")
    w.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.gt.s32 %p{number}, %c{number}, 0; @%p{number} bra row{number};")
    w.label(f"end{number}")


@statement(2)
def lookup(w: Writer, scope: Scope, depth: int) -> None:
    """A table in constant or global memory that the module initializes."""
    guard, space = w.guard(), w.pick("const", "global")
    w.emit(f"and.b32 %x2, {w.register()}, {len(TABLE) - 1}; mov.u64 %a1, {space}_table;")
    w.emit(f"{guard}ld.{space}.u32 {w.register()}, [{address(w, '%a1', '%x2', 4)}];")


@statement(6, in_kernels)
def store(w: Writer, scope: Scope, depth: int) -> None:
    kind, guard, value = w.random.random(), w.guard(), w.value()
    if kind < 0.3:  # next to each other in the thread
        w.emit(f"{guard}st.global.u32 [%own+{4 * w.random.randrange(PLACES)}], {value};")
    elif kind < 0.45:
        w.emit(f"mov.b32 %x1, {value}; {guard}st.global.{w.pick('u8', 'u16')} [%own+{2 * w.random.randrange(2 * PLACES)}], %x1;")
    elif kind < 0.6:
        w.emit(f"{guard}st.global.v2.u32 [%own+{8 * w.random.randrange(PLACES // 2)}], {{{w.register()}, {w.register()}}};")
    elif kind < 0.65:
        w.emit(f"{guard}st.global.b64 [%own+{8 * w.random.randrange(PLACES // 2)}], {w.wide()};")
    elif kind < 0.8:
        w.emit(f"and.b32 %x2, {w.register()}, {PLACES - 1};")
        w.emit(f"{guard}st.global.u32 [{address(w, '%own', '%x2', 4)}], {w.register()};")
    else:  # next to each other in the warp
        w.emit(f"mad.lo.u32 %x2, %all, {w.random.randrange(PLACES)}, %t1;")
        w.emit(f"{guard}st.global.u32 [{address(w, '%rows', '%x2', 4)}], {w.register()};")


@statement(4)
def local(w: Writer, scope: Scope, depth: int) -> None:
    """An element of an array of the thread, of any size, by its local or its generic address."""
    size = w.random.choice([1, 2, 4, 4, 4, 8])
    guard, generic = w.guard(), w.chance(0.3)
    w.emit(f"and.b32 %x2, {w.value()}, {KEPT // size - 1}; mov.u64 %a1, kept;")
    at = address(w, "%a1", "%x2", size)
    if generic:
        w.emit(f"cvta.local.u64 {at}, {at};")
    space, register = "" if generic else ".local", w.wide() if size == 8 else w.register()
    if w.chance(0.5):
        w.emit(f"{guard}st{space}.b{8 * size} [{at}], {register};")
    else:
        w.emit(f"{guard}ld{space}.{w.pick('u', 's')}{8 * size} {register}, [{at}];")


@statement(2, feature="pointers")
def allocated(w: Writer, scope: Scope, depth: int) -> None:
    """Memory from the thread's stack, given back at once."""
    size, guard = w.random.choice([16, 24, 64]), w.guard()
    w.emit(f"stacksave.u64 %a2; alloca.u64 %a1, {size}; st.local.v2.b32 [%a1], {{{w.register()}, {w.register()}}};")
    w.emit(f"and.b32 %x2, {w.register()}, 1;")
    w.emit(f"{guard}ld.local.u32 {w.register()}, [{address(w, '%a1', '%x2', 4)}];")
    w.emit("stackrestore.u64 %a2;")


# ---------------------------------------------------------------- atomic operations


@statement(4, in_kernels)
def reduce(w: Writer, scope: Scope, depth: int) -> None:
    """Each place has one operation, or the order would count."""
    place, guard = w.random.randrange(SUMS), w.guard()
    if w.chance(0.3):
        w.emit(f"{guard}atom.global.{REDUCE[place]} %x1, [%sums+{4 * place}], {w.register()};")
    else:
        w.emit(f"{guard}red.global.{REDUCE[place]} [%sums+{4 * place}], {w.register()};")


@statement(4, in_kernels, "atomics")
def reduce_wide(w: Writer, scope: Scope, depth: int) -> None:
    place, guard = w.random.randrange(len(REDUCE_WIDE) + 1), w.guard()
    order = w.pick(".relaxed.gpu", "")
    if place < len(REDUCE_WIDE):
        w.emit(f"{guard}red{order}.global.{REDUCE_WIDE[place]} [%sums+{4 * WIDE_SUMS + 8 * place}], {w.wide()};")
    else:  # small whole numbers, whose sums are exact
        w.emit(f"and.b32 %x0, {w.register()}, 15; cvt.rn.f32.u32 %e0, %x0;")
        w.emit(f"{guard}red{order}.global.add.f32 [%sums+{4 * FLOAT_SUM}], %e0;")


@statement(4, in_kernels, "atomics")
def tally(w: Writer, scope: Scope, depth: int) -> None:
    """Of the block, in shared memory."""
    w.use_shared(SLOTS)
    place, kind = w.random.choice(list(TALLY.items()))
    old, value = ("%a3", w.wide()) if kind.endswith("64") else ("%x1", "1000" if kind.startswith("inc") else w.register())
    guard = w.guard()
    if w.chance(0.5):
        w.emit(f"mov.u32 %x0, words; {guard}atom.shared.{kind} {old}, [%x0+{TALLIES + place}], {value};")
    else:
        w.emit(f"mov.u64 %a1, words; cvta.shared.u64 %a1, %a1; {guard}atom.{kind} {old}, [%a1+{TALLIES + place}], {value};")


@statement(5, in_kernels, "atomics")
def own(w: Writer, scope: Scope, depth: int) -> None:
    """On a word of the thread's own, so that the old value counts too."""
    at, guard = f"[%own+{4 * w.random.randrange(PLACES)}]", w.guard()
    space = w.pick(".global", "")
    kind = w.pick("exch.b32", "inc.u32", "dec.u32", "add.s32", "and.b32", "min.u32", "cas.b32", "add.f32", "exch.b64", "cas.b64")
    result, value = ("%d0", w.wide()) if kind.endswith("64") else (w.register(), w.register())
    at = f"[%own+{8 * w.random.randrange(PLACES // 2)}]" if kind.endswith("64") else at
    if kind == "add.f32":
        result, value = w.float(), w.float()
    compared = f"{w.wide() if kind.endswith('64') else w.value()}, " if kind.startswith("cas") else ""
    w.emit(f"{guard}atom{space}.{kind} {result}, {at}, {compared}{value};")


def contend(w: Writer, past: int) -> None:
    """Only some threads go on; the others leave for the label ``past``."""
    first, count = w.random.choice(CONTENDERS)
    w.emit(f"sub.u32 %x2, %t2, {first}; setp.ge.u32 %p{past}, %x2, {count}; @%p{past} bra past{past};")


@statement(2, in_kernels, "locks")
def critical(w: Writer, scope: Scope, depth: int) -> None:
    """One thread at a time: the lanes of a warp wait for each other without meeting."""
    number, past = w.fresh(), w.fresh()
    contend(w, past)
    w.emit(f"add.u64 %a1, %sums, {4 * LOCK};")
    w.label(f"lock{number}")
    w.emit(f"atom.acquire.gpu.global.cas.b32 %x0, [%a1], 0, 1; setp.ne.u32 %p{number}, %x0, 0; @%p{number} bra lock{number};")
    w.emit("ld.volatile.global.u32 %x1, [%a1+4]; add.u32 %x1, %x1, 3; st.volatile.global.u32 [%a1+4], %x1;")
    w.emit("membar.gl; " + w.pick("st.release.gpu.global.u32 [%a1], 0;", "atom.release.gpu.global.exch.b32 %x0, [%a1], 0;"))
    w.label(f"past{past}")


@statement(3, in_kernels, "locks")
def until_swapped(w: Writer, scope: Scope, depth: int) -> None:
    """A sum by compare and swap."""
    number, past = w.fresh(), w.fresh()
    contend(w, past)
    w.emit(f"ld.volatile.global.u32 %x0, [%sums+{4 * SWAPPED}];")
    w.label(f"swap{number}")
    w.emit(f"mov.u32 %x1, %x0; add.u32 %x2, %x1, 5; atom.global.cas.b32 %x0, [%sums+{4 * SWAPPED}], %x1, %x2;")
    w.emit(f"setp.ne.u32 %p{number}, %x0, %x1; @%p{number} bra swap{number};")
    w.label(f"past{past}")


# ---------------------------------------------------------------- asynchronous copies


@statement(3, in_kernels, "copies")
def copied(w: Writer, scope: Scope, depth: int) -> None:
    """From the input to bytes of shared memory that are the thread's own."""
    w.use_shared(SHARED)
    size, guard = w.random.choice([4, 8, 16]), w.guard()
    at = address(w, "%in", index(w), 4)
    w.emit(f"and.b64 {at}, {at}, -{size}; shl.b32 %x0, %t2, 4; mov.u32 %x1, words; add.u32 %x0, %x0, %x1;")
    read = f", {w.random.choice([0, 1, 3, size])}" if w.chance(0.3) else ""
    cache = "cg" if size == 16 and w.chance(0.5) else "ca"
    w.emit(f"{guard}cp.async.{cache}.shared.global [%x0+{SLOTS}], [{at}], {size}{read};")
    w.emit(w.pick("cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"))
    w.emit(f"ld.shared.u32 {w.register()}, [%x0+{SLOTS + 4 * w.random.randrange(4)}];")


@statement(1, anywhere)
def hint(w: Writer, scope: Scope, depth: int) -> None:
    w.emit(w.pick("membar.cta;", "fence.acq_rel.gpu;", "nanosleep.u32 20;", "membar.gl;"))

"""Kernels on which compilers have cliffs: their compile time, or memory, grows faster than the kernel does.

A generator makes such a module in any size, with an entry ``k`` that takes the address of a buffer.
"""

from __future__ import annotations

from collections.abc import Callable

TARGET = "sm_80"
HEADER = f".version 8.0\n.target {TARGET}\n.address_size 64\n"
REGISTERS = ".reg .pred %q<2>; .reg .b32 %r<99>; .reg .b64 %d<9>; .reg .f32 %f<99>;"
LOADS = """ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;
ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+128]; cvt.rn.f32.u32 %f1, %r1; cvt.rn.f32.u32 %f2, %r2;"""
STORES = "st.global.u32 [%d1], %r1; st.global.f32 [%d1+128], %f1; ret;"


def kernel(body: str, name: str = "k", registers: str = "") -> str:
    """An entry around a body that works on %r1, %r2, %f1, %f2 and the addresses %d0 and, of the thread, %d1."""
    return f".visible .entry {name}(.param .u64 p) {{\n{REGISTERS}{registers}\n{LOADS}\n{body}\n{STORES}\n}}\n"


def straight(count: int) -> str:
    """Arithmetic in a row."""
    forms = ("add.u32 %r{0}, %r{0}, %r{1};", "xor.b32 %r{0}, %r{1}, %r{0};", "fma.rn.f32 %f1, %f1, %f2, %f1;",
             "shl.b32 %r3, %r{0}, 3;", "sub.u32 %r{1}, %r3, %r{1};", "mul.lo.u32 %r{0}, %r{0}, %r{1};")  # fmt: skip
    return HEADER + kernel("\n".join(forms[i % 6].format(1 + i // 6 % 2, 2 - i // 6 % 2) for i in range(count)))


def memory(count: int) -> str:
    """Loads and stores in turn, by thread, that may overlap."""
    pair = "ld.global.u32 %r3, [%d1+{0}]; add.u32 %r1, %r1, %r3; st.global.u32 [%d1+{1}], %r1;"
    return HEADER + kernel("\n".join(pair.format(i % 1000 * 4, i % 777 * 4) for i in range(count // 2)))


def gathers(count: int) -> str:
    """Loads from places that no pattern describes."""
    index = "mul.lo.u32 %r6, %r0, %r0; and.b32 %r6, %r6, 127; mul.wide.u32 %d5, %r6, 16; add.u64 %d5, %d5, %d0;\n"
    loads = (f"ld.global.u32 %r3, [%d5+{i % 1000 * 4}]; add.u32 %r1, %r1, %r3;" for i in range(count))
    return HEADER + kernel(index + "\n".join(loads))


def divisions(count: int) -> str:
    """Signed divisions of 64 bits, each by the result of the one before."""
    body = "cvt.u64.u32 %d2, %r1; mov.u64 %d3, %d2;\n" + "div.s64 %d2, %d3, %d2;\n" * count + "cvt.u32.u64 %r1, %d2;"
    return HEADER + kernel(body)


def blocks(count: int) -> str:
    """Branches over one instruction, on conditions that differ among lanes."""
    parts = (f"setp.gt.u32 %q1, %r1, {i}; @%q1 bra L{i}; add.u32 %r1, %r1, %r0; L{i}:" for i in range(count))
    return HEADER + kernel("\n".join(parts))


def nested_loops(count: int) -> str:
    """Loops in loops, more of them than registers that count their rounds."""
    heads = "".join(f"A{i}: add.u32 %r{10 + i % 80}, %r{10 + i % 80}, 1;\n" for i in range(count))
    tails = (f"setp.lt.u32 %q1, %r{10 + i % 80}, {i + 2}; @%q1 bra A{i};\n" for i in reversed(range(count)))
    return HEADER + kernel(heads + "".join(tails))


def sums_in_a_loop(count: int) -> str:
    """Each value is made of the two before it, which start from numbers that are known and change with each round."""
    sums = "".join(f"add.u32 %x{i}, %x{i - 1}, %x{i - 2};\n" for i in range(2, count))
    loop = f"mov.u32 %r5, 0; A: mov.u32 %x0, %r5; add.u32 %x1, %r5, 16;\n{sums}xor.b32 %r1, %r1, %x{count - 1};"
    again = "add.u32 %r5, %r5, 4; setp.lt.u32 %q1, %r5, 80; @%q1 bra A;"
    return HEADER + kernel(loop + again, registers=f".reg .b32 %x<{count}>;")


def jumps_into_loops(count: int) -> str:
    """Loops with two entries each."""
    head = "setp.gt.u32 %q1, %r1, {0}; @%q1 bra B{0}; A{0}: add.u32 %r1, %r1, 1;"
    tail = "B{0}: xor.b32 %r1, %r1, 3; setp.lt.u32 %q1, %r1, {0}; @%q1 bra A{0};"
    return HEADER + kernel("\n".join(f"{head}\n{tail}".format(i) for i in range(count)))


def locks(count: int) -> str:
    """Locks that all lanes take in turn, so that each must progress by itself."""
    part = "A{0}: atom.global.cas.b32 %r3, [%d0], 0, 1; setp.ne.u32 %q1, %r3, 0; @%q1 bra A{0}; st.global.u32 [%d0], 0;"
    return HEADER + kernel("\n".join(f"{part.format(i)} add.u32 %r1, %r1, {i}; xor.b32 %r2, %r2, %r1;" for i in range(count)))


def barriers(count: int) -> str:
    """Barriers of the block, with arithmetic between."""
    return HEADER + kernel("add.u32 %r1, %r1, %r2; bar.sync 0; xor.b32 %r2, %r2, %r1;\n" * count)


def meetings(count: int) -> str:
    """Barriers of a warp in one branch, among lanes that take a lock in the other."""
    lock = "A: atom.global.cas.b32 %r3, [%d0], 0, 1; setp.ne.u32 %q1, %r3, 0; @%q1 bra A; st.global.u32 [%d0], 0;"
    body = "\n".join(f"bar.warp.sync 0xffff; add.u32 %r1, %r1, {i};" for i in range(count))
    return HEADER + kernel(f"setp.gt.u32 %q1, %r0, 15; @%q1 bra A;\n{body}\nbra B; {lock} B:")


def switch(count: int, live: int = 40) -> str:
    """An interpreter: a loop around a branch to one of many cases, with many registers that all of them use."""
    registers = [f"%r{i}" for i in range(30, 30 + live)]
    parts = [f"add.u32 {register}, %r1, {i};" for i, register in enumerate(registers)]
    cases = ", ".join(f"C{i}" for i in range(count))
    parts.append(f"mov.u32 %r7, 0; LOOP: rem.u32 %r8, %r1, {count}; T: .branchtargets {cases}; brx.idx %r8, T;")
    for i in range(count):
        a, b, c = registers[i % live], registers[(i * 7 + 3) % live], registers[(i * 11 + 5) % live]
        work = f"add.u32 {a}, {b}, {c}; xor.b32 {b}, {b}, {a}; mad.lo.u32 {c}, {a}, {b}, {c}; add.u32 %r1, %r1, {c};"
        parts.append(f"C{i}: {work} bra N;")
    parts.append("N: add.u32 %r7, %r7, 1; setp.lt.u32 %q1, %r7, 100; @%q1 bra LOOP;")
    parts += [f"add.u32 %r1, %r1, {register};" for register in registers]
    return HEADER + kernel("\n".join(parts))


def computed_branches(count: int, targets: int = 60) -> str:
    """Blocks that each go on to one of many others, back and forth, so that no order of them has few loops."""
    parts = []
    for i in range(count):
        names = ", ".join(f"C{(i + j) % count}" for j in range(targets))
        parts.append(f"C{i}: add.u32 %r1, %r1, %r0; rem.u32 %r8, %r1, {targets}; T{i}: .branchtargets {names};")
        parts.append(f"setp.eq.u32 %q1, %r1, {i}; @%q1 bra END; brx.idx %r8, T{i};")
    return HEADER + kernel("\n".join([*parts, "END:"]))


def matrices(count: int) -> str:
    """Products of matrix fragments in a row."""
    a, b = ("{" + ", ".join(f"%r{i}" for i in range(first, first + 8)) + "}" for first in (10, 20))
    c = "{" + ", ".join(f"%f{i}" for i in range(10, 18)) + "}"
    form = "sync.aligned.{}.m16n16k16.global.{}"
    loads = [f"wmma.load.{name}.{form.format(order, kind)} {into}, [%d0], 16;"
             for name, order, kind, into in (("a", "row", "f16", a), ("b", "col", "f16", b), ("c", "row", "f32", c))]  # fmt: skip
    products = [f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c}, {a}, {b}, {c};"] * count
    return HEADER + kernel("\n".join([*loads, *products, f"wmma.store.d.{form.format('row', 'f32')} [%d0], {c}, 16;"]))


def calls(count: int) -> str:
    """Calls of one device function of 75 blocks."""
    body = "".join(f"mad.lo.u32 %x1, %x1, %x1, {i}; setp.lt.u32 %q, %x1, {i}; @%q bra E{i}; xor.b32 %x1, %x1, {i}; E{i}:\n"
                   for i in range(75))  # fmt: skip
    signature = ".func (.reg .u32 %o) f(.reg .u32 %i)"
    function = f"{signature} {{ .reg .b32 %x<2>; .reg .pred %q;\nmov.u32 %x1, %i;\n{body}mov.u32 %o, %x1; ret; }}\n"
    return HEADER + function + kernel("call (%r1), f, (%r1);\n" * count)


def struct_arguments(count: int, size: int = 4000) -> str:
    """Calls of a function that takes a large struct and calls itself."""
    argument = f".param .align 4 .b8 {{0}}[{size}]"
    function = f""".func f({argument.format("s")}) {{ .reg .b32 %x; .reg .pred %q;
ld.param.u32 %x, [s+{size // 2}]; setp.eq.u32 %q, %x, 0; @%q ret; sub.u32 %x, %x, 1;
{{ {argument.format("a")}; st.param.u32 [a+{size // 2}], %x; call f, (a); }} ret; }}\n"""
    call = f"{{ {argument.format('a')}; st.param.u32 [a+{size // 2}], %r1; call f, (a); }}\n"
    return HEADER + function + kernel(call * count)


def matmul(depth: int, side: int = 8) -> str:
    """An unrolled product of side x depth and depth x side."""
    parts = [f"mov.f32 %c{i}, 0f00000000;" for i in range(side * side)]
    for k in range(depth):
        parts += [f"ld.global.f32 %a{i}, [%d1+{(i * depth + k) * 4}];" for i in range(side)]
        parts += [f"ld.global.f32 %b{j}, [%d1+{(k * side + j) * 4}];" for j in range(side)]
        cells = [(i, j) for i in range(side) for j in range(side)]
        parts += [f"fma.rn.f32 %c{i * side + j}, %a{i}, %b{j}, %c{i * side + j};" for i, j in cells]
    parts += [f"add.f32 %f1, %f1, %c{i};" for i in range(side * side)]
    return HEADER + kernel("\n".join(parts), registers=f".reg .f32 %a<{side}>, %b<{side}>, %c<{side * side}>;")


def kernels(count: int) -> str:
    """A module of small kernels, of which one is launched."""
    body = "".join(f"add.u32 %r1, %r1, %r2; xor.b32 %r2, %r1, {i};" for i in range(15))
    return HEADER + "".join(kernel(body, "k" if i == 0 else f"k{i}") for i in range(count))


CLIFFS: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "straight": (straight, (1000, 5000, 20_000)),
    "memory": (memory, (1000, 5000, 20_000)),
    "gathers": (gathers, (1000, 5000, 10_000)),
    "divisions": (divisions, (250, 1000, 4000)),
    "blocks": (blocks, (250, 1000, 4000)),
    "nested-loops": (nested_loops, (20, 80, 320)),
    "sums-in-a-loop": (sums_in_a_loop, (100, 400, 1600)),
    "jumps-into-loops": (jumps_into_loops, (25, 100, 400)),
    "locks": (locks, (100, 400, 1600)),
    "barriers": (barriers, (100, 400, 1600)),
    "meetings": (meetings, (50, 200, 800)),
    "switch": (switch, (100, 200, 400)),
    "computed-branches": (computed_branches, (15, 60, 240)),
    "matrices": (matrices, (256, 512, 1024, 2048)),
    "calls": (calls, (24, 94, 376)),
    "struct-arguments": (struct_arguments, (16, 64, 256)),
    "matmul": (matmul, (16, 64, 256)),
    "kernels": (kernels, (50, 200, 1000)),
}
"""Generators by name, each with the sizes to measure."""

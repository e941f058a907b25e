"""Stations that no row of the table describes: calls of the runtime's functions and of the module's, branches by index, and
runs of accesses.

Each makes a text from a random source and the station's number; registers are written as in :mod:`tests.support.row_forms`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

FORMATS = ("%s", "%d %s\\n", "%lld", "%n", "%*d", "%.*s", "%f", "%65536d", "%.99999f", "%ls", "%c", "%p", "%", "%%", "%hhd%hd%ld",
           "%5$d", "%s%s%s%s%s%s%s%s", "%a", "%-+ #0*.*lld")  # fmt: skip
EXTERNS = """\
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.func (.param .b64 r) twice(.param .b64 a)
{
  .reg .b64 %d<3>;
  ld.param.b64 %d1, [a]; add.u64 %d2, %d1, %d1; st.param.b64 [r], %d2; ret;
}
.func (.param .b64 r) deep(.param .b64 a)
{
  .local .align 8 .b8 frame[48];
  .reg .b64 %d<5>; .reg .pred %p;
  ld.param.b64 %d1, [a]; setp.eq.u64 %p, %d1, 0; st.local.u64 [frame+8], %d1; mov.b64 %d3, 0;
  @%p bra E;
  sub.u64 %d2, %d1, 1;
  { .param .b64 x; .param .b64 y; st.param.b64 [x], %d2; call (y), deep, (x); ld.param.b64 %d3, [y]; }
E:
  ld.local.u64 %d4, [frame+8]; add.u64 %d3, %d3, %d4; st.param.b64 [r], %d3; ret;
}
"""


def printing(rng: random.Random, number: int) -> str:
    """A format that the kernel has written, or any address; arguments anywhere."""
    fill = ""
    if rng.random() < 0.7:
        text = rng.choice(FORMATS).replace("\\n", "\n") * rng.choice((1, 1, 2, 5))
        words = [int.from_bytes(text.encode()[at : at + 8].ljust(8, b"\0"), "little") for at in range(0, len(text) + 1, 8)]
        stores = " ".join(
            f"mov.b64 %d9, {word}; st.global.b64 [%out+{60000 + 256 * at}], %d9;" for at, word in enumerate(words[:1])
        )
        fill = f"{stores} add.u64 %d1, %out, 60000; "
    return (
        f"{fill}{{ .param .b64 f; .param .b64 a; .param .b32 q; st.param.b64 [f], %d1; st.param.b64 [a], %d2; "
        "call (q), vprintf, (f, a); ld.param.b32 %r1, [q]; }"
    )


def allocating(rng: random.Random, number: int) -> str:
    use = rng.choice(("st.b64 [%d2], %d3; ld.b64 %d4, [%d2+8]; ", "", "st.b64 [%d2+-8], %d3; "))
    freed = rng.choice(("%d2", "%d2", "%d1", "%d3"))
    again = rng.choice(("", f"{{ .param .b64 p; st.param.b64 [p], {freed}; call free, (p); }}"))
    return (
        "{ .param .b64 n; .param .b64 q; st.param.b64 [n], %d1; call (q), malloc, (n); ld.param.b64 %d2, [q]; } "
        f"{use}{{ .param .b64 p; st.param.b64 [p], {freed}; call free, (p); }} {again}"
    )


def freeing(rng: random.Random, number: int) -> str:
    return "{ .param .b64 p; st.param.b64 [p], %d1; call free, (p); }"


def asserting(rng: random.Random, number: int) -> str:
    return (
        "{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s; st.param.b64 [m], %d1; "
        "st.param.b64 [f], %d2; st.param.b32 [l], %r1; st.param.b64 [n], %d3; st.param.b64 [s], %d4; "
        "call __assertfail, (m, f, l, n, s); }"
    )


def calling(rng: random.Random, number: int) -> str:
    """An indirect call of an address that is a function's, near one, or anything."""
    target = rng.choice(("mov.b64 %d1, twice; ", "mov.b64 %d1, deep; add.u64 %d1, %d1, 1; ", "", ""))
    listed = rng.choice(("C{0}: .calltargets twice, deep;", "C{0}: .callprototype (.param .b64 _) _ (.param .b64 _);"))
    return (
        f"{target}{{ .param .b64 x; .param .b64 y; {listed.format(number)} st.param.b64 [x], %d2; "
        f"call (y), %d1, (x), C{number}; ld.param.b64 %d3, [y]; }}"
    )


def recursing(rng: random.Random, number: int) -> str:
    return "{ .param .b64 x; .param .b64 y; st.param.b64 [x], %d1; call (y), deep, (x); ld.param.b64 %d2, [y]; }"


def branching(rng: random.Random, number: int) -> str:
    """A jump by an index that may be beyond the list."""
    return f"B{number}: .branchtargets B{number}a, B{number}b; brx.idx %r1, B{number}; B{number}a: B{number}b:"


def moving_the_stack(rng: random.Random, number: int) -> str:
    """The stack pointer goes anywhere, then functions and allocations use it."""
    use = rng.choice((recursing(rng, number), "alloca.u64 %d2, %d3, 16; st.local.b64 [%d2], %d1;", calling(rng, number)))
    restored = rng.choice(("", "stackrestore.u64 %d4;"))
    return f"stacksave.u64 %d4; stackrestore.u64 %d1; {use} {restored}"


def neighbouring(rng: random.Random, number: int) -> str:
    """A run of accesses off one or two bases, which may share their tests."""
    space = rng.choice(("", ".global", ".global", ".shared", ".shared", ".local", ".const"))
    bases = ("%r1", "%r2") if space in (".shared", ".local") and rng.random() < 0.7 else ("%d1", "%d2")
    middle = rng.choice((0, 0, 0, 256, -64, 65536, 2**31 - 64, -(2**31) + 128))
    lines = []
    for index in range(rng.randint(5, 14)):
        type, size = rng.choice((("u32", 4), ("u32", 4), ("u8", 1), ("u16", 2), ("u64", 8), ("v2.u32", 8), ("v4.u32", 16)))
        offset = middle + rng.choice((size * rng.randrange(-4, 12), size * index, size * index, rng.randrange(-40, 100)))
        address = f"[{bases[0] if rng.random() < 0.8 else bases[1]}{offset:+}]"
        register = "%d3" if type == "u64" else "%h1" if size < 4 else "%r3"
        data = "{" + ", ".join(f"%r{3 + at}" for at in range(int(type[1]))) + "}" if type[0] == "v" else register
        lines.append(f"ld{space}.{type} {data}, {address};" if space == ".const" or rng.random() < 0.5 else
                     f"st{space}.{type} {address}, {data};")  # fmt: skip
    return " ".join(lines)


CALLS: dict[str, Callable[[random.Random, int], str]] = {
    "printing": printing, "allocating": allocating, "freeing": freeing, "asserting": asserting, "calling": calling,
    "recursing": recursing, "branching": branching, "moving the stack": moving_the_stack, "neighbouring": neighbouring,
}  # fmt: skip

"""Calls of the runtime with less and less room on the warp's stack: ``python -m tests.runtime.hostile_stack``.

Whatever takes a lock must fault before it does: the lock would stay taken for ever. Prints how many calls ended, and how many
faulted.
"""

from __future__ import annotations

import sys

from ptxemu.device.arena import Arena
from ptxemu.text.errors import Fault
from tests.runtime.runtime_harness import I32, I64, Code, Kernel

STACK = 1 << 20
STEP = 176  # bytes; no divisor of a page


def caller(name: str) -> Kernel:
    """Takes as many bytes of the stack as the first parameter says and calls a function of the runtime."""

    def build(c: Code) -> None:
        values, results = c.b.alloca(I64, 32), c.b.alloca(I64, 32)
        c.b.store(c.param(1), values)
        c.b.alloca(I64, c.b.lshr(c.param(0), c.i64(3)))
        if name == "pe_malloc":
            c.call(name, 1, values, results)
        elif name == "pe_free":
            c.b.store(c.i64(0), values)
            c.call(name, 1, 1, values)
        elif name == "pe_vprintf":
            c.call(name, 1, 1, values, values, c.b.bitcast(results, results.type))
        else:
            c.call(name, 1, 1, values, values, c.b.alloca(I32, 32), values)

    return Kernel(build)


def main() -> None:
    arena = Arena(64 << 20)
    text = arena.alloc(64)
    ended = faulted = 0
    for name in ("pe_malloc", "pe_free", "pe_vprintf", "pe_assertfail"):
        kernel = caller(name)
        for left in range(0, 48 << 10, STEP):
            try:
                kernel(arena, STACK - left, text, block=(1, 1, 1), workers=1, timeout=20)
                ended += 1
            except Fault as fault:
                if fault.record["kind"] not in ("stack overflow", "assertion failed"):
                    raise
                faulted += 1
    print(ended, faulted)
    sys.exit(not (ended and faulted))


if __name__ == "__main__":
    main()

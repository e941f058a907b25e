"""Results of instructions on an NVIDIA H200, ``tests/data/h200.npz``, and what ptxemu makes of the same operands.

Of each group, named by its operands and the bits of its results, such as ``f32*f32/32``: the ``instructions``, and the ``words``
of each on all combinations of the operands, the last varying the fastest. Of long ones every so many words, and ``digests``.
Groups whose results are ``near`` the least normal number have operands of their own.
"""

from __future__ import annotations

import numpy as np

import ptxemu
from tests.support.places import DATA

WORDS = dict(np.load(DATA / "h200.npz"))
GROUPS = [name.removeprefix("words/") for name in WORDS if name.startswith("words/")]
EVERY_HALF = np.arange(1 << 16, dtype=np.uint16)
VALUES = {"all16": EVERY_HALF, "allhi": EVERY_HALF.astype(np.uint32) << 16 | EVERY_HALF ^ 0x5555}
BLOCK = 128
Array = np.ndarray


def operands(group: str) -> list[Array]:
    names = group.split("/")[0].split("*")
    if f"operands/{names[0]}.0" in WORDS:
        return [WORDS[name] for name in sorted(WORDS) if name.startswith(f"operands/{names[0]}.")]
    values = [VALUES[name] if name in VALUES else WORDS[f"operands/{name}"] for name in names]
    return [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*values, indexing="ij")]


def kernel(instructions: list[str], sources: list[int], bits: int) -> str:
    """Each result follows those of the instructions before it: ``d[k, i]`` of n."""
    inputs, names = range(len(sources)), ", ".join(f"%x{i}" for i in range(len(sources)))
    parameters = "".join(f".param .u64 p{i}, " for i in inputs)
    registers = " ".join(f".reg .b{width} %x{i};" for i, width in zip(inputs, sources, strict=True))
    lines = [f".visible .entry k({parameters}.param .u64 d, .param .u32 n)\n{{"]
    lines.append(f".reg .pred %p; .reg .b32 %i, %t, %n; .reg .b64 %o, %q; {registers} .reg .b{bits} %d;")
    lines.append(f"mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, {BLOCK}, %t;")
    lines.append("ld.param.u32 %n, [n]; setp.ge.u32 %p, %i, %n; @%p ret;")
    for i, width in zip(inputs, sources, strict=True):
        lines.append(f"ld.param.u64 %q, [p{i}]; mul.wide.u32 %o, %i, {width // 8}; add.u64 %q, %q, %o;")
        lines.append(f"ld.global.b{width} %x{i}, [%q];")
    lines.append(f"ld.param.u64 %q, [d]; mul.wide.u32 %o, %i, {bits // 8}; add.u64 %q, %q, %o; mul.wide.u32 %o, %n, {bits // 8};")
    for text in instructions:
        tested = text.startswith("testp")
        lines.append(f"{text} %p, {names}; selp.b32 %d, 1, 0, %p;" if tested else f"{text} %d, {names};")
        lines.append(f"st.global.b{bits} [%q], %d; add.u64 %q, %q, %o;")
    return "\n".join([".version 9.0\n.target sm_90\n.address_size 64", *lines, "ret;\n}\n"])


def results(group: str, instructions: list[str], **options: str) -> Array:
    """A row for each instruction."""
    xs, bits = operands(group), int(group.split("/")[1])
    found = np.zeros((len(instructions), len(xs[0])), f"u{bits // 8}")
    module = ptxemu.loads(kernel(instructions, [x.dtype.itemsize * 8 for x in xs], bits), **options)
    module["k"][-(-len(xs[0]) // BLOCK), BLOCK](*xs, found, len(xs[0]))
    return found

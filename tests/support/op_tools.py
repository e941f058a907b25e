"""Single instructions as the checker leaves them."""

from __future__ import annotations

from ptxemu.driver import compile
from ptxemu.ir.ops import Op

MODULE = """
.version 8.6
.target sm_90a
.address_size 64
.global .surfref surface;
.global .texref texture;
.shared .align 16 .b8 memory[64];
.entry k()
{{
    .reg .b32 %r<16>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<8>;
    .reg .pred %p<4>;
    {}
}}
"""


def op_of(text: str) -> Op:
    """An instruction as the checker leaves it."""
    body = compile.front(MODULE.format(text)).functions["k"].body
    assert body is not None
    (op,) = (item for item in body if isinstance(item, Op))
    return op

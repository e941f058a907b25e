"""What every worker needs is made once, before they are forked."""

from __future__ import annotations

from contextlib import suppress

from ptxemu.cache import Cache
from ptxemu.driver import jit
from ptxemu.driver.program import Program, Settings
from ptxemu.text.errors import InputError
from ptxemu.text.source import SourceFile

KERNEL = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra $L;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd2];
  st.global.f32 [%rd2], %f1;
$L:
  ret;
}
"""
"""What almost all kernels have."""


def warm() -> None:
    """Import the compiler, and read a module for what is there for the next one: tables of the grammar, rows, the fingerprint."""
    jit.host()
    with suppress(InputError):  # a variable of the environment is wrong, which each request is told
        program = Program(SourceFile("<warm>", KERNEL), Settings(), Cache(None))
        _ = program.identity, program.info

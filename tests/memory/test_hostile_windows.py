"""Local and shared windows, frames and the stack pointer of hostile programs: nothing outside them is reached."""

from __future__ import annotations

import pytest

import ptxemu
from tests.support.hostile_tools import outcome, outcomes
from tests.support.kernel_tools import kernel

MAX_LOCAL = 512 << 10  # bytes that a thread of a device may have
LARGEST_VARIABLE = 1 << 40  # bytes that the front end takes

RECURSION = """
.func f(.param .b32 n);
.func f(.param .b32 n)
{{
  .local .align {align} .b8 big[{size}];
  .reg .b32 %r<4>; .reg .pred %p;
  ld.param.b32 %r1, [n];
  setp.eq.s32 %p, %r1, 0;
  @%p bra DONE;
  mov.u32 %r2, 7;
  st.local.u32 [big], %r2;
  st.local.u32 [big+{last}], %r2;
  sub.s32 %r3, %r1, 1;
  {{ .param .b32 a; st.param.b32 [a], %r3; call f, (a); }}
DONE:
  ret;
}}
"""


def recursive(size: int, align: int = 16) -> str:
    """A kernel that sets the stack pointer to its argument and calls a function with a frame."""
    body = """
  ld.param.u64 %rd0, [sp];
  stackrestore.u64 %rd0;
  mov.u32 %r1, 2;
  { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
  ret;"""
    return kernel(body, ".param .u64 sp", RECURSION.format(size=size, align=align, last=size - 4))


@pytest.mark.parametrize("size", [MAX_LOCAL + 16, 1 << 32, 1 << 58, 1 << 59, 1 << 60, (1 << 63) - 16])
def test_local_variables_beyond_what_a_thread_has(size):
    body = f".local .align 16 .b8 big[{size}]; ld.param.u64 %rd0, [at]; ld.local.u32 %r1, [%rd0]; st.local.u32 [%rd0], %r1; ret;"
    said = outcome(kernel(body, ".param .u64 at"), 0x400000)
    if size > LARGEST_VARIABLE:
        assert said.startswith("PtxError: test.ptx:8:22: error: 'big' takes more than")
    else:
        assert said.startswith("InputError: test.ptx:")
        assert said.endswith(f"'k' takes {size} bytes of local memory; a thread has {MAX_LOCAL}")


def test_local_variables_as_large_as_allowed():
    body = f".local .align 16 .b8 big[{MAX_LOCAL}]; mov.u32 %r1, %tid.x; st.local.u32 [big+{MAX_LOCAL - 4}], %r1; ret;"
    assert outcome(kernel(body, "")) == "ended"


@pytest.mark.parametrize("size", [MAX_LOCAL + 16, 1 << 40, (1 << 63) - 16])
def test_frames_beyond_what_a_thread_has(size):
    said = outcome(recursive(size), 0)
    if size > LARGEST_VARIABLE:
        assert said.startswith("PtxError: test.ptx:") and "'big' takes more than" in said
    else:
        assert said.startswith("InputError") and f"'f' takes {size} bytes of local memory; a thread has {MAX_LOCAL}" in said


@pytest.mark.parametrize("align", [16, 1 << 12, 1 << 31])
@pytest.mark.parametrize("size", [16, 4096, MAX_LOCAL])
def test_stack_pointers_beyond_the_window(size, align):
    near = [(1 << 64) - below for below in (1, 4, 15, 16, 17, size - 1, size, size + 1, size + 16)]
    stacks = [1 << 20, 1 << 63, (1 << 64) - (1 << 40), *near]
    for said, stack in zip(outcomes(recursive(size, align), [[stack] for stack in stacks]), stacks, strict=True):
        assert said[0].startswith("Fault: stack overflow in kernel `k`"), hex(stack)


@pytest.mark.parametrize("by_lane", [False, True])
def test_alloca_where_there_is_no_room(by_lane):
    spread = "cvt.u64.u32 %rd9, %tid.x; and.b64 %rd9, %rd9, 0;" if by_lane else "mov.u64 %rd9, 0;"
    body = f"""
  .local .align 16 .b8 own[64];
  {spread}
  ld.param.u64 %rd0, [sp]; ld.param.u64 %rd1, [size];
  add.u64 %rd0, %rd0, %rd9; add.u64 %rd1, %rd1, %rd9;
  stackrestore.u64 %rd0;
  alloca.u64 %rd2, %rd1, 4096;
  mov.u32 %r1, 7;
  st.local.u32 [%rd2], %r1;
  ret;"""
    stacks = [1 << 20, (1 << 64) - 1, (1 << 64) - 8, (1 << 64) - (1 << 12)]
    sizes = [1, 8, 1 << 12, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]
    tries = [(stack, size) for stack in stacks for size in sizes]
    for said, given in zip(outcomes(kernel(body, ".param .u64 sp, .param .u64 size"), tries), tries, strict=True):
        assert said[0].startswith("Fault: stack overflow in kernel `k`"), given


def test_own_variables_and_the_stack_fit_together():
    """What a kernel declares goes first; the stack is what is left of a thread's local memory."""
    own = MAX_LOCAL - 4096
    body = f"""
  .local .align 16 .b8 own[{own}];
  mov.u64 %rd1, {{size}};
  alloca.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.local.u32 [%rd2], %r1; st.local.u32 [own], %r1;
  ret;"""
    ptxemu.loads(kernel(body.format(size=4096), ""))["k"][1, 1]()
    with pytest.raises(ptxemu.Fault, match="stack overflow"):
        ptxemu.loads(kernel(body.format(size=4097), ""))["k"][1, 1]()

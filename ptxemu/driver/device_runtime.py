"""CUDA's device runtime: what kernels call to launch kernels (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").

nvcc leaves these functions external; here they are, as PTX that a program is linked with. A launch is a block of the heap of
kernels, put before the last one in a list of the module. The host takes the list when a grid has ended (csrc/host/nested.h).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxemu.text.source import SourceFile

NAME = "device runtime"
EXTERN = re.compile(r"\.extern\s+\.func\b[^;{]*?\b__cudaCDP2(\w+?)(_ptsz)?\s*[(;]")

HEAD = """.version 6.0
.target sm_60
.address_size 64
.extern .func (.param .b64 made) malloc (.param .b64 size);
.extern .func free (.param .b64 what);
.visible .global .align 8 .u64 __ptxemu_launches;
.visible .global .align 4 .u32 __ptxemu_parameters;
"""

# what a launch begins with: pe_child_head in csrc/host/nested.h
BUFFER = """.visible .func (.param .b64 out) __cudaCDP2GetParameterBufferV2 (.param .b64 kernel, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared)
{
  .reg .pred %none;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.global.u32 %r0, [__ptxemu_parameters];
  cvt.u64.u32 %d0, %r0;
  add.u64 %d0, %d0, 64;
  {
    .param .b64 size;
    .param .b64 made;
    st.param.b64 [size], %d0;
    call (made), malloc, (size);
    ld.param.b64 %d1, [made];
  }
  setp.eq.u64 %none, %d1, 0;
  @%none bra END;
  ld.param.b64 %d2, [kernel];
  ld.param.b32 %r1, [grid];
  ld.param.b32 %r2, [grid+4];
  ld.param.b32 %r3, [grid+8];
  ld.param.b32 %r4, [block];
  ld.param.b32 %r5, [block+4];
  ld.param.b32 %r6, [block+8];
  ld.param.b32 %r7, [shared];
  st.u64 [%d1+8], %d2;
  st.u32 [%d1+32], %r1;
  st.u32 [%d1+36], %r2;
  st.u32 [%d1+40], %r3;
  st.u32 [%d1+44], %r4;
  st.u32 [%d1+48], %r5;
  st.u32 [%d1+52], %r6;
  st.u32 [%d1+56], %r7;
  add.u64 %d1, %d1, 64;
END:
  st.param.b64 [out], %d1;
  ret;
}
"""

LAUNCH = """.visible .func (.param .b32 out) NAME (.param .b64 buffer, .param .b64 stream)
{
  .reg .pred %again;
  .reg .b32 %r0;
  .reg .b64 %d<5>;
  mov.u32 %r0, 701;
  ld.param.b64 %d0, [buffer];
  setp.eq.u64 %again, %d0, 0;
  @%again bra END;
  sub.u64 %d0, %d0, 64;
  ld.param.b64 %d1, [stream];
  mov.u64 %d2, %gridid;
  st.u64 [%d0+16], %d2;
  st.u64 [%d0+24], %d1;
  ld.volatile.global.u64 %d3, [__ptxemu_launches];
AGAIN:
  st.u64 [%d0], %d3;
  membar.sys;
  mov.u64 %d4, %d3;
  atom.sys.global.cas.b64 %d3, [__ptxemu_launches], %d4, %d0;
  setp.ne.u64 %again, %d3, %d4;
  @%again bra AGAIN;
  mov.u32 %r0, 0;
END:
  st.param.b32 [out], %r0;
  ret;
}
"""


def _answer(parameters: str, value: int = 0) -> str:
    """A function that only returns a value."""
    return f".visible .func (.param .b32 out) NAME ({parameters})\n{{ st.param.b32 [out], {value}; ret; }}\n"


def _writer(parameters: str, kind: str, value: int) -> str:
    """A function that writes a value to where its first parameter says, and succeeds."""
    return f""".visible .func (.param .b32 out) NAME ({parameters})
{{
  .reg .b64 %d0;
  .reg .b64 %d1;
  ld.param.b64 %d0, [a];
  mov.u64 %d1, {value};
  st.{kind} [%d0], %d1;
  st.param.b32 [out], 0;
  ret;
}}
"""


MALLOC = """.visible .func (.param .b32 out) NAME (.param .b64 a, .param .b64 b)
{
  .reg .pred %none;
  .reg .b32 %r0;
  .reg .b64 %d<3>;
  ld.param.b64 %d0, [a];
  ld.param.b64 %d1, [b];
  {
    .param .b64 size;
    .param .b64 made;
    st.param.b64 [size], %d1;
    call (made), malloc, (size);
    ld.param.b64 %d2, [made];
  }
  st.u64 [%d0], %d2;
  setp.eq.u64 %none, %d2, 0;
  selp.b32 %r0, 2, 0, %none;
  st.param.b32 [out], %r0;
  ret;
}
"""

FREE = """.visible .func (.param .b32 out) NAME (.param .b64 a)
{
  .reg .b64 %d0;
  ld.param.b64 %d0, [a];
  {
    .param .b64 what;
    st.param.b64 [what], %d0;
    call free, (what);
  }
  st.param.b32 [out], 0;
  ret;
}
"""


def _string(name: str, text: str) -> str:
    data = text.encode() + b"\0"
    return f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


ERROR_STRING = _string("__ptxemu_fine", "no error") + _string("__ptxemu_failed", "too many resources requested for launch")
ERROR_STRING += """.visible .func (.param .b64 out) NAME (.param .b32 a)
{
  .reg .pred %fine;
  .reg .b32 %r0;
  .reg .b64 %d<3>;
  ld.param.b32 %r0, [a];
  setp.eq.u32 %fine, %r0, 0;
  mov.u64 %d0, __ptxemu_fine;
  mov.u64 %d1, __ptxemu_failed;
  selp.b64 %d2, %d0, %d1, %fine;
  cvta.global.u64 %d2, %d2;
  st.param.b64 [out], %d2;
  ret;
}
"""

# a copy and a set in the order of a stream are launches, too
KERNEL = """.visible .entry {name} (.param .u64 to, .param .u64 from, .param .u64 size)
{{
  .reg .pred %done;
  .reg .b16 %h0;
  .reg .b32 %r<4>;
  .reg .b64 %d<7>;
  ld.param.u64 %d0, [to];
  ld.param.u64 %d1, [from];
  ld.param.u64 %d2, [size];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %tid.x;
  mad.wide.u32 %d3, %r0, %r1, 0;
  cvt.u64.u32 %d4, %r3;
  add.u64 %d3, %d3, %d4;
  mul.wide.u32 %d4, %r1, %r2;
  cvt.u16.u64 %h0, %d1;
AGAIN:
  setp.ge.u64 %done, %d3, %d2;
  @%done bra END;
  add.u64 %d5, %d1, %d3;
  add.u64 %d6, %d0, %d3;
  {load}
  st.u8 [%d6], %h0;
  add.u64 %d3, %d3, %d4;
  bra AGAIN;
END:
  ret;
}}
"""
COPY, SET = KERNEL.format(name="__ptxemu_copy", load="ld.u8 %h0, [%d5];"), KERNEL.format(name="__ptxemu_set", load="")
MOVE = """\
.func (.param .b32 out) __ptxemu_move (.param .b64 kernel, .param .b64 a, .param .b64 b, .param .b64 c, .param .b64 stream)
{
  .reg .pred %none;
  .reg .b32 %r0;
  .reg .b64 %d<6>;
  ld.param.b64 %d0, [kernel];
  ld.param.b64 %d1, [a];
  ld.param.b64 %d2, [b];
  ld.param.b64 %d3, [c];
  ld.param.b64 %d4, [stream];
  {
    .param .b64 what;
    .param .align 4 .b8 grid[12];
    .param .align 4 .b8 block[12];
    .param .b32 shared;
    .param .b64 made;
    st.param.b64 [what], %d0;
    st.param.b32 [grid], 8;
    st.param.b32 [grid+4], 1;
    st.param.b32 [grid+8], 1;
    st.param.b32 [block], 128;
    st.param.b32 [block+4], 1;
    st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    call (made), __cudaCDP2GetParameterBufferV2, (what, grid, block, shared);
    ld.param.b64 %d5, [made];
  }
  setp.eq.u64 %none, %d5, 0;
  @%none bra LAUNCH;
  st.u64 [%d5], %d1;
  st.u64 [%d5+8], %d2;
  st.u64 [%d5+16], %d3;
LAUNCH:
  {
    .param .b64 buffer;
    .param .b64 where;
    .param .b32 result;
    st.param.b64 [buffer], %d5;
    st.param.b64 [where], %d4;
    call (result), __cudaCDP2LaunchDeviceV2, (buffer, where);
    ld.param.b32 %r0, [result];
  }
  st.param.b32 [out], %r0;
  ret;
}
"""


def _move(kernel: str, parameters: str, second: str) -> str:
    return f""".visible .func (.param .b32 out) NAME ({parameters})
{{
  .reg .b32 %r0;
  .reg .b64 %d<5>;
  ld.param.b64 %d0, [a];
  {second}
  ld.param.b64 %d2, [c];
  ld.param.b64 %d3, [stream];
  mov.u64 %d4, {kernel};
  {{
    .param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b64 p3; .param .b64 p4;
    .param .b32 result;
    st.param.b64 [p0], %d4;
    st.param.b64 [p1], %d0;
    st.param.b64 [p2], %d1;
    st.param.b64 [p3], %d2;
    st.param.b64 [p4], %d3;
    call (result), __ptxemu_move, (p0, p1, p2, p3, p4);
    ld.param.b32 %r0, [result];
  }}
  st.param.b32 [out], %r0;
  ret;
}}
"""


STREAM, EVENT = 4096, 4097
"""Handles: all launches of a grid are done one after another, so that all streams are alike, but that of tail launches."""

FUNCTIONS = {
    "StreamCreateWithFlags": _writer(".param .b64 a, .param .b32 flags", "u64", STREAM),
    "StreamDestroy": _answer(".param .b64 a"),
    "StreamWaitEvent": _answer(".param .b64 a, .param .b64 b, .param .b32 flags"),
    "EventCreateWithFlags": _writer(".param .b64 a, .param .b32 flags", "u64", EVENT),
    "EventRecord": _answer(".param .b64 a, .param .b64 b"),
    "EventDestroy": _answer(".param .b64 a"),
    "GetLastError": _answer(""),
    "PeekAtLastError": _answer(""),
    "GetErrorString": ERROR_STRING,
    "GetDevice": _writer(".param .b64 a", "u32", 0),
    "GetDeviceCount": _writer(".param .b64 a", "u32", 1),
    "Malloc": MALLOC,
    "Free": FREE,
    "MemcpyAsync": _move(
        "__ptxemu_copy",
        ".param .b64 a, .param .b64 b, .param .b64 c, .param .b32 kind, .param .b64 stream",
        "ld.param.b64 %d1, [b];",
    ),
    "MemsetAsync": _move(
        "__ptxemu_set",
        ".param .b64 a, .param .b32 b, .param .b64 c, .param .b64 stream",
        "ld.param.b32 %r0, [b];\n  cvt.u64.u32 %d1, %r0;",
    ),
}


def with_device_runtime(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """The texts of a program, and what they need of the device runtime."""
    runtime = _device_runtime([source.text for source in sources])
    return [*sources, *([] if runtime is None else [SourceFile(NAME, runtime)])]


def _device_runtime(texts: list[str]) -> str | None:
    """The PTX of the functions that some texts of a program leave external; None: there are none that are known."""
    wanted = {match.groups() for text in texts if "__cudaCDP2" in text for match in EXTERN.finditer(text)}
    known = sorted((name, suffix or "") for name, suffix in wanted if name in FUNCTIONS or "V2" in name)
    if not known:
        return None
    parts = [HEAD, BUFFER, LAUNCH.replace("NAME", "__cudaCDP2LaunchDeviceV2")]
    if any(name.startswith("Mem") for name, _ in known):
        parts += [COPY, SET, MOVE]
    if ("LaunchDeviceV2", "_ptsz") in known:
        parts.append(LAUNCH.replace("NAME", "__cudaCDP2LaunchDeviceV2_ptsz"))
    parts += [FUNCTIONS[name].replace("NAME", f"__cudaCDP2{name}{suffix}") for name, suffix in known if name in FUNCTIONS]
    return "\n".join(parts)

"""Kernels that multiply with wgmma: one warpgroup, matrices in shared memory as the host gives it byte for byte."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import ptxemu

SHARED = 3 << 14
HEAD = f"""\
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 memory, .param .u64 a, .param .u64 e, .param .u64 c, .param .u64 d)
{{
  .reg .pred %p, %q, %more; .reg .b32 %t, %s, %i, %e, %x<4>, %a<4>, %d<128>;
  .reg .b64 %o, %from, %pa, %pe, %pc, %pd, %base, %da, %db;
  .shared .align 1024 .b8 shared[{SHARED}];
  ld.param.u64 %from, [memory]; ld.param.u64 %pa, [a]; ld.param.u64 %pe, [e]; ld.param.u64 %pc, [c]; ld.param.u64 %pd, [d];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;
  add.u64 %pa, %pa, %o; add.u64 %pe, %pe, %o; add.u64 %pc, %pc, %o; add.u64 %pd, %pd, %o;
  ld.global.b32 %a0, [%pa]; ld.global.b32 %a1, [%pa+512]; ld.global.b32 %a2, [%pa+1024]; ld.global.b32 %a3, [%pa+1536];
  ld.global.b32 %e, [%pe];
  mov.u32 %s, shared; cvt.u64.u32 %base, %s; shr.u64 %base, %base, 4;
  mul.wide.u32 %o, %t, 16; add.u64 %from, %from, %o; mov.u32 %i, 0; shl.b32 %x0, %t, 4; add.u32 %s, %s, %x0;
copy:
  ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from]; st.shared.v4.b32 [%s], {{%x0, %x1, %x2, %x3}};
  add.u64 %from, %from, 2048; add.u32 %s, %s, 2048; add.u32 %i, %i, 2048;
  setp.lt.u32 %more, %i, {SHARED};
  @%more bra copy;
  fence.proxy.async; bar.sync 0;
  setp.ne.u32 %p, %i, 0; setp.eq.u32 %q, %i, 0;
"""


class Product(NamedTuple):
    """One instruction: its name, descriptors of A (None: it is in registers) and of B from the start of shared memory on, and
    what else it has as operands: metadata and selector, scale of c (a constant, ``%p`` that
    is true or ``%q`` that is false), and constants at its end."""

    name: str
    a: int | None
    b: int
    selector: int | None = None
    scale: str = "1"
    constants: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return int(re.findall(r"n(\d+)k", self.name)[0])

    @property
    def registers(self) -> int:
        return self.n // (4 if re.search(r"k\d+\.f16", self.name) else 2)

    @property
    def text(self) -> str:
        d = "{" + ", ".join(f"%d{i}" for i in range(self.registers)) + "}"
        a = "{%a0, %a1, %a2, %a3}" if self.a is None else "%da"
        metadata = [] if self.selector is None else ["%e", str(self.selector)]
        return f"{self.name} {', '.join([d, a, '%db', *metadata, self.scale, *map(str, self.constants)])};"

    @property
    def lines(self) -> list[str]:
        """With its sums at %pc and %pd, which go on."""
        rows, aligned = range(self.registers), ".sync.aligned" if ".aligned" in self.name else ".sync"
        return [
            *[f"  ld.global.b32 %d{i}, [%pc+{512 * i}];" for i in rows],
            f"  add.u64 %da, %base, {self.a or 0}; add.u64 %db, %base, {self.b};",
            f"  wgmma.fence{aligned}; {self.text}",
            f"  wgmma.commit_group{aligned}; wgmma.wait_group{aligned} 0;",
            *[f"  st.global.b32 [%pd+{512 * i}], %d{i};" for i in rows],
            f"  add.u64 %pc, %pc, {512 * self.registers}; add.u64 %pd, %pd, {512 * self.registers};",
        ]


def kernel(products: Sequence[Product]) -> str:
    return "\n".join([HEAD, *(line for one in products for line in one.lines), "  ret;", "}"])


def bare_kernel(products: Sequence[Product]) -> str:
    """The instructions alone, with neither sums nor results."""
    return "\n".join([HEAD, *(f"  {one.text}" for one in products), "  ret;", "}"])


def run(
    products: Sequence[Product], memory: np.ndarray, c: Sequence[np.ndarray], a: np.ndarray | None = None,
    e: np.ndarray | None = None, like: str = "", device: ptxemu.Device | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """The registers of each product's d, [register][thread]."""
    given = np.concatenate([one.ravel() for one in c])
    d = np.zeros_like(given)
    a = np.zeros((4, 128), np.uint32) if a is None else a
    e = np.zeros(128, np.uint32) if e is None else e
    module = ptxemu.loads(kernel(products), like=like, **({} if device is None else {"device": device}))
    module["k"][1, 128](memory, np.ascontiguousarray(a), e, given, d)
    ends = np.cumsum([one.size for one in c])[:-1]
    return [part.reshape(-1, 128) for part in np.split(d, ends)]

"""Kernels of one warpgroup in a CTA, or in each of a pair, whose tensor memory and shared memory are what the host gives, before
some instructions of tcgen05."""

from __future__ import annotations

import re

import numpy as np

import ptxemu

SHARED = 5 << 13
REGISTERS = 128
LANES, COLUMNS = 128, 512
HEAD = f"""\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 memory, .param .u64 cells, .param .u64 values, .param .u64 a, .param .u64 b, .param .u32 format)
{{
  .reg .pred %p, %q, %more, %one; .reg .b32 %t, %w, %s, %c, %i, %x<8>, %r<{REGISTERS}>, %at, %b; .reg .b16 %pair;
  .reg .b64 %o, %from, %cells, %values, %v, %base, %da, %db, %n0, %n1; .reg .b32 %n2;
  .shared .align 1024 .b8 shared[{SHARED}]; .shared .b64 arrived; .shared .b32 start;
  ld.param.u64 %n0, [a]; ld.param.u64 %n1, [b]; ld.param.u32 %n2, [format];
  ld.param.u64 %from, [memory]; ld.param.u64 %cells, [cells]; ld.param.u64 %values, [values]; mov.u32 %c, %ctaid.x;
  mul.wide.u32 %o, %c, {SHARED}; add.u64 %from, %from, %o; mul.wide.u32 %o, %c, {LANES * COLUMNS * 4}; add.u64 %cells, %cells, %o;
  mul.wide.u32 %o, %c, {REGISTERS * LANES * 4}; add.u64 %values, %values, %o; mov.b16 %pair, 3;
  mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mul.wide.u32 %o, %t, 4; add.u64 %cells, %cells, %o; add.u64 %values, %values, %o;
  mov.u32 %s, shared; cvt.u64.u32 %base, %s; and.b64 %base, %base, 0x3ffff; shr.u64 %base, %base, 4;
  mul.wide.u32 %o, %t, 16; add.u64 %from, %from, %o; mov.u32 %i, 0; shl.b32 %x0, %t, 4; add.u32 %s, %s, %x0;
copy:
  ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from]; st.shared.v4.b32 [%s], {{%x0, %x1, %x2, %x3}};
  add.u64 %from, %from, 2048; add.u32 %s, %s, 2048; add.u32 %i, %i, 2048;
  setp.lt.u32 %more, %i, {SHARED};
  @%more bra copy;
  setp.eq.u32 %one, %t, 0; setp.ne.u32 %p, %i, 0; setp.eq.u32 %q, %i, 0;
  @%one mbarrier.init.shared.b64 [arrived], 1;
  fence.proxy.async; bar.sync 0;
"""
BEGIN = """\
  setp.ne.u32 %more, %w, 0;
  @%more bra wait;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [start], 512;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
wait:
  tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  ld.shared.b32 %b, [start]; shl.b32 %at, %w, 21; add.u32 %at, %at, %b; mov.u32 %c, 0; mov.b64 %v, %cells;
fill:
  ld.global.b32 %x0, [%v]; tcgen05.st.sync.aligned.32x32b.x1.b32 [%at], {%x0};
  add.u64 %v, %v, 512; add.u32 %at, %at, 1; add.u32 %c, %c, 1; setp.lt.u32 %more, %c, 512;
  @%more bra fill;
  tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  shl.b32 %at, %w, 21; add.u32 %at, %at, %b;
"""
END = """\
  tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
  shl.b32 %at, %w, 21; add.u32 %at, %at, %b; mov.u32 %c, 0; mov.b64 %v, %cells;
empty:
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%at]; tcgen05.wait::ld.sync.aligned; st.global.b32 [%v], %x0;
  add.u64 %v, %v, 512; add.u32 %at, %at, 1; add.u32 %c, %c, 1; setp.lt.u32 %more, %c, 512;
  @%more bra empty;
  bar.sync 0; setp.ne.u32 %more, %w, 0;
  @%more bra done;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b, 512;
done:
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [arrived];"
ARRIVED = f"""\
  @%one {COMMIT}
again:
  mbarrier.try_wait.parity.shared.b64 %more, [arrived], 0;
  @!%more bra again;
  tcgen05.fence::after_thread_sync;
"""


def kernel(body: str) -> str:
    """With a body after tensor memory is filled and before it is read; %at and %b are the addresses of a warp's and all lanes."""
    return f"{HEAD}{BEGIN}{body}{END}  ret;\n}}\n"


PAIR_COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [arrived], %pair;"
CLUSTER_BARRIER = "  barrier.cluster.arrive; barrier.cluster.wait;\n"


def pair_kernel(body: str, issuer: int = 0) -> str:
    """The same for a pair of CTAs, of which one executes what %one guards; ``kernels.ARRIVED`` is of both."""
    alone = f"  mov.u32 %x7, %cluster_ctarank; setp.eq.and.u32 %one, %x7, {issuer}, %one;\n"
    text = kernel(CLUSTER_BARRIER + alone + body).replace("  ret;\n", f"{CLUSTER_BARRIER}  ret;\n")
    return text.replace(COMMIT, PAIR_COMMIT).replace("cta_group::1", "cta_group::2")


def registers(number: int) -> str:
    return "{" + ", ".join(f"%r{i}" for i in range(number)) + "}"


def from_host(number: int, first: int = 0) -> str:
    """So many registers of the thread's values."""
    return "".join(f"  ld.global.b32 %r{i}, [%values+{512 * (first + i)}];\n" for i in range(number))


def to_host(number: int, first: int = 0) -> str:
    return "".join(f"  st.global.b32 [%values+{512 * (first + i)}], %r{i};\n" for i in range(number))


DESCRIPTORS = re.compile(r"(%da, %base, )(\d+)(; add.u64 %db, %base, )(\d+)((?s:.*?)%db(?:, \[[^]]*\])?, )(\d+),")


def with_descriptors(text: str) -> tuple[str, list[int]]:
    """A kernel that reads its descriptors from parameters, and these: products that differ in nothing else are compiled once."""
    numbers: list[int] = []

    def read(match: re.Match[str]) -> str:
        numbers[:] = map(int, match.group(2, 4, 6))
        return "{}%n0{}%n1{}%n2,".format(*match.group(1, 3, 5))

    return DESCRIPTORS.sub(read, text, count=1), numbers or [0, 0, 0]


def run(
    text: str, cells: np.ndarray, values: np.ndarray | None = None, memory: np.ndarray | None = None,
    device: ptxemu.Device | None = None, constant: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """[lane][column] words of tensor memory, and [register][thread] words of the values, both as they are after it.

    Of a pair, each array has a dimension more, of two. Descriptors are ``constant`` or read from parameters.
    """
    columns = np.ascontiguousarray(np.swapaxes(cells, -1, -2).astype(np.uint32))
    ctas = cells.size // (LANES * COLUMNS)
    shape = cells.shape[:-2]
    values = np.zeros((*shape, REGISTERS, 128), np.uint32) if values is None else np.ascontiguousarray(values.astype(np.uint32))
    memory = np.zeros((*shape, SHARED), np.uint8) if memory is None else memory
    text, descriptors = (text, [0, 0, 0]) if constant else with_descriptors(text)
    module = ptxemu.loads(text, filename="k.ptx", **({} if device is None else {"device": device}))
    module["k"][ctas, 128](memory, columns, values, *descriptors, **({"cluster": ctas} if ctas > 1 else {}))
    return np.swapaxes(columns, -1, -2), values

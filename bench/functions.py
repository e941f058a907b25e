"""What approximate functions of f32 with the bits of the hardware cost, beside the default ones: nanoseconds for a warp.

    python bench/functions.py [--cpu x86-64-v3]

CPU time of one worker on kernels that do little else, the least of rounds in which all kernels take turns.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ptxemu
from ptxemu.driver import jit

FUNCTIONS = tuple(f"{name}.approx{ftz}" for name in ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos") for ftz in ("", ".ftz"))
DIVISIONS = ("div.approx", "div.full", "div.approx.ftz", "div.full.ftz")
CALLS, TURNS, ROUNDS = 16, 32, 25
GRID, BLOCK, WARP = 16, 256, 32
LIKE = "sm_80"
AVX2 = "+avx2,+bmi2,+fma"
KERNEL = """.visible .entry {name}(.param .u64 a) {{
  .reg .b32 %i, %t; .reg .f32 %x, %y, %z, %s; .reg .b64 %o, %p; .reg .pred %q;
  mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, {block}, %t; mul.wide.u32 %o, %i, 4;
  ld.param.u64 %p, [a]; add.u64 %p, %p, %o; ld.global.f32 %x, [%p]; mov.f32 %s, 0f00000000; mov.u32 %t, 0;
TURN: {calls} add.f32 %x, %x, 0f3C000000; add.u32 %t, %t, 1; setp.lt.u32 %q, %t, {turns}; @%q bra TURN;
  st.global.f32 [%p], %s; ret;
}}"""


def kernel(instruction: str) -> str:
    operands = "%y, %x" if instruction.startswith("div") else "%y"
    call = f"add.f32 %y, %x, 0f3F{{number:02X}}0000; {instruction}.f32 %z, {operands}; add.f32 %s, %s, %z;"
    calls = " ".join(call.format(number=number) for number in range(CALLS))
    return KERNEL.format(name=instruction.replace(".", "_"), block=BLOCK, calls=calls, turns=TURNS)


def measured() -> dict[tuple[str, str], float]:
    """Nanoseconds for a warp, by instruction and architecture."""
    text = ".version 8.0\n.target sm_80\n.address_size 64\n" + "\n".join(map(kernel, (*FUNCTIONS, *DIVISIONS)))
    device = ptxemu.Device(memory="64 MiB", workers=1)
    modules = {like: ptxemu.loads(text, like=like, device=device, tier="best") for like in ("", LIKE)}
    operands = np.random.default_rng(1).uniform(0.1, 4, GRID * BLOCK).astype(np.float32)
    least: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for name in (*FUNCTIONS, *DIVISIONS):
            for like, module in modules.items():
                array = operands.copy()
                start = time.process_time()
                module[name.replace(".", "_")][GRID, BLOCK](array)
                spent = time.process_time() - start
                least[name, like] = min(spent, least.get((name, like), spent))
    return {key: 1e9 * spent * WARP / (GRID * BLOCK * TURNS * CALLS) for key, spent in least.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", choices=["native", "x86-64-v3"], default="native")
    if parser.parse_args().cpu != "native":
        triple, _, _ = jit.host()
        jit.host = lambda: (triple, "x86-64-v3", AVX2)  # type: ignore[assignment]
    prices = measured()
    print(f"{'':16}default  hardware")
    for name in (*FUNCTIONS, *DIVISIONS):
        plain, exact = prices[name, ""], prices[name, LIKE]
        print(f"{name:16}{plain:7.1f}  {exact:8.1f}  {exact / plain:.1f}")


if __name__ == "__main__":
    main()

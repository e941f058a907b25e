"""A fuzz target for CTM: no text may raise, hang or crash, in lint or in a launch.

    python tests/fuzz_ctm.py [--iterations N] [--seconds S] [--seed K]

Texts are mutations of the samples and of the programs below; what fails is printed.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import fuzz_front
import numpy as np

import ptxemu
from ptxemu.errors import Error

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SEED = 9
PROGRAMS = [
    """.kernel k umrt
.domain 1 0 3 2
.output A a
.input 0 b LINEAR_INP_2X2
.point r0
.constants cs
TEX r1, r0, inp0
ALU RGB MAD.OMOD_D2.CLAMP.PRED_OP_LESS.PRED_SEL_RRRR.PRED_INV r0.rg|pred.b, r1.rrr, -r2, |r3|; ALPHA MIN.OMOD_DISABLED r4, c1, c0
OUTPUT MOV.RNDR_TGT_UMRT_SAME_IDX_TEX_SEM_ACQUIRE.PRED_SEL_AAAA out, r4
""",
    """.kernel k cached
.output A a
.output B b
.in r0 values
.out pred bits
.conditional c
.set_cond_test 3
.set_cond_loc 1
.set_cond_out_mask 0
.engine_value -2.5
.set_out_mask 0x7
ALU ADD.PRED_OP_EQUAL pred, r0, -r1
OUTPUT RGB CND.RNDR_TGT_A.PRED_SEL_GGGG out.r, r0, r1, r2; ALPHA MOV.W_OMASK.RNDR_TGT_B r5|out, 1
OUTPUT NOP
""",
]
PIECES = [
    *"|,;-=.#\0é²٣", "||", "--", "..", ".r.", "r0.", "0", "-1", "1e99", "0x", "0f7fc00000", "99999999999999999999", "nan", "inf",
    "c255", "c256", "r127", "r128", "inp15", "inp16", "pred", "out", "none", "ALU", "OUTPUT", "RGB", "ALPHA", "TEX", "NOP", "MAX",
    "RNDR_TGT_D", "OMOD_DISABLED", "CLAMP", "W_OMASK", "PRED_OP_EQUAL", "PRED_SEL_BBBB", "RNDR_TGT_UMRT_SAME_IDX", "umrt",
    "cached",     "\n.kernel k2 umrt\n", "\n.domain 0 0 4095 4095\n", "\n.in r0 q\n", "\n.out pred z\n",
    "\n.const c1 = 1 2 3 4\n", "\r\n",
    "\n.input 1 a TILED\n", "\n.output C c\n", "\n.set_out_mask 16\n", "\nOUTPUT MOV.RNDR_TGT_A out, 1\n", "/*", "*/", "//",
    "\ufeff",
]  # fmt: skip
FORMATS = ("R32_FLOAT", "R32_FLOAT", "R32G32_FLOAT", "R32G32B32A32_FLOAT", "R8G8B8A8_UNORM", "R16_UNORM", "R32_UINT")


def insert(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 2, 5)) :]


def exchange(rng: random.Random, text: str) -> str:
    """One word becomes another of the text, or a piece."""
    words = re.findall(r"\w+|\W", text) or [""]
    words[rng.randrange(len(words))] = rng.choice(words if rng.random() < 0.6 else PIECES)
    return "".join(words)


def move_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "\n".join(lines)


MUTATIONS: list[Callable[[random.Random, str], str]] = [insert, exchange, exchange, exchange, move_line, move_line]
MUTATIONS += [fuzz_front.swap, fuzz_front.drop_line, fuzz_front.drop_line, fuzz_front.repeat, fuzz_front.truncate]


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("64 MiB", workers=1)


@cache
def surface(format: str) -> ptxemu.SurfaceObject:
    return device().surface((3, 4), format=format)


def check_text(rng: random.Random, text: str) -> bool:
    """Lint and, if it is a program, run a text with sixteen points; was it one?"""
    strict = rng.random() < 0.3
    for item in ptxemu.lint(text, dialect="ctm", strict=strict):
        assert item.render()
    try:
        module = ptxemu.loads(text, dialect="ctm", device=device(), strict=strict, opt=0, options={"tiling": "ignore"})
        for name in set(re.findall(r"\.(?:input\s+\d+|output\s+\w|conditional)\s+(\w+)", text)):
            module.bind(name, surface(rng.choice(FORMATS)))
        for kernel in module:
            arguments = [np.zeros(2048, np.uint32) for _ in module.info.kernels[kernel].parameters]
            module[kernel][(1, 2), 8](*arguments, timeout=1)
    except Error:
        return False
    return True


def fuzz(seed: int, iterations: int, seconds: float) -> tuple[int, int]:
    """Run until one of the limits; how many texts were tried, and how many ran. Raises what fails, the text printed."""
    sources = [path.read_text() for path in sorted(SAMPLES.glob("ctm_*/*.ctm"))] + PROGRAMS
    stop, ran = time.monotonic() + seconds, 0
    for done in range(iterations):
        if time.monotonic() > stop:
            return done, ran
        rng = random.Random(seed * 1_000_000 + done)
        text = rng.choice(sources)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(MUTATIONS)(rng, text)
        try:
            ran += check_text(rng, text)
        except BaseException:
            print(f"iteration {done} of seed {seed} failed:\n{text}", file=sys.stderr)
            raise
    return iterations, ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    tried, ran = fuzz(options.seed, options.iterations, options.seconds)
    print(f"{tried} texts, of which {ran} ran")


if __name__ == "__main__":
    main()

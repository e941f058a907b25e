"""A fuzz target for vISA: no text may raise, hang or crash, in lint, the encoder or a launch.

    python tests/fuzz_visa.py [--iterations N] [--seconds S] [--seed K]

Texts are mutations of the samples.  What fails is printed.
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
from ptxemu.dialects.visa.encoding import decode
from ptxemu.errors import Error, InputError

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SEED = 7
PIECES = [
    *"{}()[]<>,;:.@!+-=`'\"#&?~_%\\\0\r\n\t é", "V0", "T0", "T252", "P1", "(P1) ", "(!P1.any) ", "goto", "ret", "jmp", "movs",
    "setp", "mad", "sel", "M1", "M8_NM", "NoMask", ", 8)", "16", "0", "-1", "4294967296", "99999999999999999999999:ud", ":vf",
    ":hf", ":df", ":q", ".16", "<0;1,0>", "<1>", "(abs)", "(-)", "(~)", "T6(0)", "V40(0,0)<1;1,0>", "V40(31,31)<1>", "1e400:f",
    "1e-400:df", "nan:f", "0x", "/*", "*/", "//", "%null.0", "%local_id_x", "alias=<V40, 3>", "num_elts=",
    "\ngoto (M1, 8) LOOP\n", "\n(P1) goto (M1, 1) DONE\n", "\njmp (M1, 1) LOOP\n", "\nret (M3, 8)\n", "\nx:\n", "\n.kernel k\n",
    "\n.slot 1 small\n", "\n.em 0\n", "\n.kernel_attr SimdSize=16\n", "\n.input T6\n", "\n.in V40 more\n", "\n.out P1 bits\n",
]  # fmt: skip
OPTIONS: list[dict[str, str]] = [
    {}, {"half_result": "sign"}, {"surplus_coordinate": "ignore", "missing_coordinate": "zero"}, {"raw_alignment": "register"},
]  # fmt: skip


def insert(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 2, 5)) :]


def exchange(rng: random.Random, text: str) -> str:
    """One word or character becomes another piece, or another word."""
    words = re.findall(r"\w+|\W", text) or [""]
    words[rng.randrange(len(words))] = rng.choice((rng.choice(PIECES), rng.choice(words)))
    return "".join(words)


def move(rng: random.Random, text: str) -> str:
    """A line comes elsewhere."""
    lines = text.split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


MUTATIONS: list[Callable[[random.Random, str], str]] = [insert] * 4 + [exchange] * 4 + [move] * 4
MUTATIONS += [fuzz_front.swap, fuzz_front.drop_line, fuzz_front.drop_line, fuzz_front.repeat, fuzz_front.truncate]


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("64 MiB", workers=1)


def check_code(rng: random.Random) -> None:
    """Bytes decode to a text, or are refused."""
    code = bytearray(rng.randbytes(48))
    code[0] = 0x73
    code[1] &= rng.choice((0x3F, 0xFF))
    code[2] &= rng.choice((0xF3, 0xFF))
    try:
        assert decode(bytes(code)).count(" ") >= 9
    except InputError:
        return


def check_text(rng: random.Random, text: str) -> bool:
    """Lint and, if it is a program, run a text with four threads; was it one?"""
    for item in ptxemu.lint(text, dialect="visa", strict=rng.random() < 0.3):
        assert item.render()
    try:
        module = ptxemu.loads(text, dialect="visa", device=device(), opt=0, options=rng.choice(OPTIONS))
        surface = device().surface((4, 8), format="R32_UINT")
        for name in module.info.handles if rng.random() < 0.8 else ():
            module.bind(name, surface)
        for kernel in module:
            arguments = [np.zeros(4096, np.uint32) if item.size == 8 else 3 for item in module.info.kernels[kernel].parameters]
            module[kernel][1, 4](*arguments, timeout=1)
    except Error:
        return False
    return True


def fuzz(seed: int, iterations: int, seconds: float) -> tuple[int, int]:
    """Run until one of the limits; how many texts were tried, and how many ran. Raises what fails, the text printed."""
    sources = [path.read_text() for path in sorted(SAMPLES.glob("visa_*/*.visa"))]
    stop, ran = time.monotonic() + seconds, 0
    for done in range(iterations):
        if time.monotonic() > stop:
            return done, ran
        rng = random.Random(seed * 1_000_000 + done)
        text = rng.choice(sources)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(MUTATIONS)(rng, text)
        try:
            check_code(rng)
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

"""A fuzz target for SASS: no text may raise, hang or crash, in lint, the assembler, the disassembler or a launch.

    python tests/fuzz_sass.py [--iterations N] [--seconds S] [--seed K]

Texts are mutations of the samples; words are those of instructions with some bits inverted.  What fails is printed.
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
from ptxemu.dialects.sass.encoding import decode
from ptxemu.dialects.sass.listing import assemble
from ptxemu.errors import Diagnostics, Error, InputError
from ptxemu.source import SourceFile

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
SEED = 5
PIECES = [
    *"{}()[],;:.@!+-=`'\"#&?~_\\\0\r\n\t é", "RZ", "PT", "R0", "R3", "R254", "R255", "P0", "P7", "!P0", ".CC",
    "SR_TID.X", "-1", "0x", "0xffffffff", "99999999999999999999",
    "c[0x0][0x8]", "c[0x0][0x140]", "c[17][0xfffc]", "c[99][4]", "/*", "*/", "//", "{&req_6}",
    "&req={0,1}", "?sched", ".E", ".BA", ".1D", ".3D", ".2D_ARRAY", ".1D_BUFFER", ".SD32", ".U64", ".F16x2.RN", ".F32.FTZ.RN",
    ".IGN", ".TRAP", ".NEAR", ".P",
    "\nRED.ADD [R4], R5\n", "\nSURED.D.1D.ADD [R4], R5, R6\n", "@P0 ", "@!PT ", "\nBRA x\n", "\nx:\n", "\nEXIT\n",
    "\n.kernel k\n", "\n.param u32 n\n", "\n.param ptr p 0x148\n", "\n.const c[0x0][0x20] = 5\n", "\n.bank 3\n",
    "\n.helper 0xff\n", "\n.in R1 a\n", "\n.out R1 b\n", "\n.header 9 q\n", "\n.maxheader 0\n",
]  # fmt: skip
WORDS = (0xEB58052602970407, 0xEB50050602870407, 0xEBF9FFE700980406, 0xEBF9000000670204)


def insert(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 2, 5)) :]


def exchange(rng: random.Random, text: str) -> str:
    """One word or character becomes another piece."""
    words = re.findall(r"\w+|\W", text) or [""]
    words[rng.randrange(len(words))] = rng.choice(PIECES)
    return "".join(words)


MUTATIONS: list[Callable[[random.Random, str], str]] = [insert] * 4 + [exchange] * 4
MUTATIONS += [fuzz_front.swap, fuzz_front.drop_line, fuzz_front.drop_line, fuzz_front.repeat, fuzz_front.truncate]


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("64 MiB", workers=1)


def check_words(rng: random.Random) -> None:
    """A word decodes to a text that, if it is legal, has that word; or it is refused."""
    word = rng.choice(WORDS)
    for _ in range(rng.randint(1, 12)):
        word ^= 1 << rng.randrange(53 if rng.random() < 0.9 else 64)
    try:
        text = decode(word)
    except InputError:
        return
    source = SourceFile("<word>", text)
    diagnostics = Diagnostics(source)
    for _, again in assemble(source, diagnostics):
        assert again == word, (hex(word), text)


def check_text(text: str) -> bool:
    """Lint, assemble and, if it is a program, run a text with four threads; was it one?"""
    for item in ptxemu.lint(text, dialect="sass"):
        assert item.render()
    source = SourceFile("<fuzz>", text)
    for _, word in assemble(source, Diagnostics(source)):
        if word is not None:
            assert decode(word)
    try:
        module = ptxemu.loads(text, dialect="sass", device=device(), opt=0)
        surface = device().surface((4, 8), format="R32_UINT")
        for name in re.findall(r"\.header\s+\w+\s+(\w+)", text):
            module.bind(name, surface)
        for kernel in module:
            arguments = [np.zeros(2048, np.uint32) if item.size == 8 else 3 for item in module.info.kernels[kernel].parameters]
            module[kernel][1, 4](*arguments, timeout=1)
    except Error:
        return False
    return True


def fuzz(seed: int, iterations: int, seconds: float) -> tuple[int, int]:
    """Run until one of the limits; how many texts were tried, and how many ran. Raises what fails, the text printed."""
    sources = [path.read_text() for path in sorted(SAMPLES.glob("sass_*/*.sass"))]
    stop, ran = time.monotonic() + seconds, 0
    for done in range(iterations):
        if time.monotonic() > stop:
            return done, ran
        rng = random.Random(seed * 1_000_000 + done)
        text = rng.choice(sources)
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(MUTATIONS)(rng, text)
        try:
            check_words(rng)
            ran += check_text(text)
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

"""Fuzz targets for the sister instruction sets: no text may raise, hang or crash, in lint, in encoding or in a launch.

    python -m tests.fuzz.dialects [sass] [visa] [ctm] [--iterations N] [--seconds S] [--seed K]

Texts are mutations of the samples; what fails is printed.  ``fuzz_<dialect>.py`` says what a dialect's texts are made of
and what is done with one.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np

import ptxemu
from tests.fuzz import front as fuzz_front
from tests.support.places import SAMPLES

DIALECTS = ("sass", "visa", "ctm")
SEED = 7


Mutation = Callable[[random.Random, str, Sequence[str]], str]


def insert(rng: random.Random, text: str, pieces: Sequence[str]) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(pieces) + text[at + rng.choice((0, 0, 1, 2, 5)) :]


def exchange(rng: random.Random, text: str, pieces: Sequence[str]) -> str:
    """One word or character becomes a piece, or another word of the text."""
    words = re.findall(r"\w+|\W", text) or [""]
    words[rng.randrange(len(words))] = rng.choice((rng.choice(pieces), rng.choice(words)))
    return "".join(words)


def move_line(rng: random.Random, text: str, pieces: Sequence[str]) -> str:
    """A line comes elsewhere, or is there twice."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    line = lines.pop(at) if rng.random() < 0.5 else lines[at]
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def of_any_text(change: fuzz_front.Mutation) -> Mutation:
    return lambda rng, text, pieces: change(rng, text)


MUTATIONS: Sequence[Mutation] = (insert,) * 4 + (exchange,) * 4 + (move_line,) * 4
MUTATIONS += tuple(map(of_any_text, (fuzz_front.swap, fuzz_front.drop_line, fuzz_front.repeat, fuzz_front.truncate)))


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("64 MiB", workers=1)


def lint(text: str, dialect: str, strict: bool = False) -> None:
    for item in ptxemu.lint(text, dialect=dialect, strict=strict):
        assert item.render()


def launch(module: ptxemu.Module, grid: int | tuple[int, int], block: int) -> None:
    """Every kernel, with zeros for arrays and 3 for numbers."""
    for kernel in module:
        arguments = [np.zeros(4096, np.uint32) if item.size == 8 else 3 for item in module.info.kernels[kernel].parameters]
        module[kernel][grid, block](*arguments, timeout=1)


@dataclass(frozen=True)
class Target:
    """``check`` does all there is to do with a text, and tells whether it was a program that ran."""

    dialect: str
    pieces: Sequence[str]
    check: Callable[[random.Random, str], bool]
    programs: Sequence[str] = ()

    @property
    def sources(self) -> list[str]:
        files = sorted(SAMPLES.glob(f"{self.dialect}_*/*.{self.dialect}"))
        return [*(path.read_text(encoding="utf-8") for path in files), *self.programs]

    def mutated(self, rng: random.Random, text: str) -> str:
        for _ in range(rng.choice((1, 1, 2, 4))):
            text = rng.choice(MUTATIONS)(rng, text, self.pieces)
        return text

    def fuzz(self, iterations: int, seconds: float = float("inf"), seed: int = SEED) -> tuple[int, int]:
        """Run until one of the limits; how many texts were tried, and how many ran. Raises what fails, the text printed."""
        sources, stop, ran = self.sources, time.monotonic() + seconds, 0
        for done in range(iterations):
            if time.monotonic() > stop:
                return done, ran
            rng = random.Random(seed * 1_000_000 + done)
            text = self.mutated(rng, rng.choice(sources))
            try:
                ran += self.check(rng, text)
            except BaseException:
                print(f"iteration {done} of seed {seed} failed:\n{text}", file=sys.stderr)
                raise
        return iterations, ran


def target(dialect: str) -> Target:
    found: Target = import_module(f"tests.fuzz.{dialect}").TARGET
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialects", nargs="*", default=DIALECTS, metavar="DIALECT", help="sass, visa, ctm; all by default")
    parser.add_argument("--iterations", type=int, default=100_000, help="texts of each")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    for dialect in options.dialects:
        tried, ran = target(dialect).fuzz(options.iterations, options.seconds, options.seed)
        print(f"{dialect}: {tried} texts, of which {ran} ran")


if __name__ == "__main__":
    main()

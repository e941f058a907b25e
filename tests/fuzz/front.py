"""A fuzz target for the front end: no text, however malformed, may raise, hang or take much memory.

    python -m tests.fuzz.front [--iterations N] [--seconds S] [--seed K] [--workers W]

Texts are mutations of real modules and of the small modules that ptxas was asked about, truncations, deep nesting, long lines and
random bytes. A failing text is written to a file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress

import ptxemu
from ptxemu.driver import compile
from ptxemu.driver.describe import describe
from tests.support.places import AGREEMENT, CORPUS

SEED = 20240
SMALL = 6000  # characters of a corpus file that one iteration works on
MEMORY = 4 << 30  # bytes of address space; a text that needs more fails
HANG = 20  # seconds of CPU time after which a text counts as one that hangs
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
PIECES = [*"{}()[]<>;,:.@!%$_|+-*/&^~?=\"'\\#\0\r\n\t\f\v\ufeff\u00e9\u2028", "0x", "0f3F800000", "0d", "1e999",
          "99999999999999999999",
          "/*", "*/", "//",
          ".reg", ".b32", ".entry", ".func", ".param", ".version", ".target", ".global", ".align",
          ".loc", ".file",
          ".section", ".pragma", ".branchtargets", ".callprototype", "call", "ret;", "@%p", "add.u32", "%r<100000>",
          "{{{{", "}}}}",
          "((((", "::", ".v4", "..", "<", "- - -", "ld.global", "[%rd1+", "generic(", "={{{1}}}"]  # fmt: skip

Mutation = Callable[[random.Random, str], str]


def replace(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 0, 1, 2, 8, 64)) :]


def swap(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    first, second = rng.randrange(len(words)), rng.randrange(len(words))
    words[first], words[second] = words[second], words[first]
    return " ".join(words)


def drop_line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def repeat(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    part = text[start : start + rng.randrange(1, 40)]
    return text[:start] + part * rng.randrange(2, 30) + text[start:]


def truncate(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def random_bytes(rng: random.Random, text: str) -> str:
    return HEADER + rng.randbytes(rng.randrange(200)).decode("latin-1")


def nest(rng: random.Random, text: str) -> str:
    opener = rng.choice(["{", "(", "[", "-", "!", "~", "@", "a:", "{a,", "1+(", ".global .u32 x[", "1?", ".entry k(){"])
    return HEADER + rng.choice(["", ".entry k() {\n", ".global .u32 x = "]) + opener * rng.randrange(1, 3000)


def long_line(rng: random.Random, text: str) -> str:
    return (
        HEADER + ".entry k() { " + rng.choice(["add.u32 %r1, %r2, %r3; ", "x", "1,", "/* */", "{%a, "]) * rng.randrange(1, 3000)
    )


MUTATIONS: Sequence[Mutation] = (replace,) * 12 + (
    swap,
    swap,
    drop_line,
    drop_line,
    repeat,
    truncate,
    random_bytes,
    nest,
    long_line,
)


def texts() -> list[str]:
    """The beginnings and ends of the corpus files, their headers and their bodies; and as many of the small modules."""
    whole = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.ptx"))]
    parts = [text[:SMALL] for text in whole] + [HEADER + text[text.find(".visible .entry") :][:SMALL] for text in whole]
    with gzip.open(AGREEMENT, "rt", encoding="utf-8") as file:
        small = [json.loads(line)["text"][:SMALL] for line in file]
    return parts * (len(small) // len(parts)) + small


def mutated(rng: random.Random, sources: list[str]) -> str:
    text = rng.choice(sources)
    start = rng.randrange(len(text))
    text = text if len(text) < 1000 or rng.random() < 0.2 else HEADER + text[start : start + 600]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(MUTATIONS)(rng, text)
    return text


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in a block that takes more CPU time, where the system has such alarms."""

    def expired(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    if not hasattr(signal, "SIGPROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def front_end(text: str, strict: bool) -> None:
    """All that a module goes through until a kernel of it is compiled."""
    ptxemu.lint(text, strict=strict)
    with suppress(ptxemu.Error):
        describe(compile.front(text))


def fuzz(seed: int, iterations: int, seconds: float) -> int:
    """Run until one of the limits; how many texts were tried. Raises what the front end raises, the text saved."""
    rng, sources, stop = random.Random(seed), texts(), time.monotonic() + seconds
    for done in range(iterations):
        if time.monotonic() > stop:
            return done
        text = mutated(rng, sources)
        try:
            with time_limit(HANG):
                front_end(text, strict=done % 2 == 0)
        except BaseException:
            with tempfile.NamedTemporaryFile("w", suffix=".ptx", delete=False, encoding="utf-8") as file:
                file.write(text)
            print(f"iteration {done} of seed {seed} failed; the text is in {file.name}", file=sys.stderr)
            raise
    return iterations


def limit_memory() -> None:
    """Make a MemoryError, with the text that asks for it, of what would else take all memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that share the iterations")
    options = parser.parse_args()
    shares = [
        options.iterations // options.workers + (at < options.iterations % options.workers) for at in range(options.workers)
    ]
    with ProcessPoolExecutor(options.workers, initializer=limit_memory) as pool:
        seeds = range(options.seed, options.seed + options.workers)
        done = sum(pool.map(fuzz, seeds, shares, [options.seconds] * options.workers))
    print(f"{done} texts")


if __name__ == "__main__":
    main()

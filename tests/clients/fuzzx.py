"""PTX that NVIDIA's assembler is known to compile wrongly: here every word is right.

``python -m tests.clients.fuzzx DIRECTORY [NAME ...]``: a checkout of https://github.com/SemiAnalysisAI/FuzzX; only miscompiles
whose name has one of the names in it. Each is launched as its program in CUDA C++ or the fuzzer does it, as compiled code and
interpreted. What the words must be is said in its notes, mostly as the scalar trace.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ptxemu
from tests.clients.fuzzx_words import CRASHES, UNDEFINED, UNSTATED, WORDS

KNOWN = Path("ptx/known-miscompiles")
ENTRY = re.compile(r"\.entry\s+(\w+)\s*\(([^)]*)\)")
PARAMETER = re.compile(r"\.param\s+\.(\w+)\s+(\w+)")
CONSTANT = re.compile(r"constexpr \w+ k(\w+) = (\w+);")
GIVEN = re.compile(r"h_in\[\w*\] = \{([^}]+)\}")
FIRST = re.compile(r"h_in\[(\d+)\] = (\w+);")
WORDS_OF_ARRAYS = 4096
THREADS, SIZE = 32, 32
"""What the fuzzer gives."""
LANE = "Lane"
"""The only thread that a program in CUDA C++ has of the fuzzer's."""


@dataclass
class Miscompile:
    """``entry`` is the kernel; ``constants`` are those of its program."""

    folder: Path
    text: str
    entry: str
    parameters: list[tuple[str, str]]
    constants: dict[str, int]
    source: str

    @property
    def number(self) -> int:
        return int(self.folder.name[1:4])

    def inputs(self) -> np.ndarray:
        words = np.zeros(WORDS_OF_ARRAYS, np.uint32)
        file = self.folder / "input.bin"
        if file.exists():
            given = np.fromfile(file, np.uint32)
        else:
            found = GIVEN.search(self.source)
            given = np.array([self._value(word) for word in found[1].split(",") if word.strip()] if found else [], np.uint32)
        words[: len(given)] = given
        for place, word in FIRST.findall(self.source):
            words[int(place)] = self._value(word)
        if LANE in self.constants:
            words[self.constants[LANE]] = self.constants["Input0"]
        return words

    @property
    def threads(self) -> int:
        return THREADS if LANE in self.constants else self.constants.get("Threads", THREADS)

    def _value(self, word: str) -> int:
        name = word.strip()
        return self.constants[name[1:]] if name.startswith("k") else int(name.rstrip("uU"), 0)

    def outputs(self, engine: str) -> np.ndarray:
        """What the kernel leaves. Raises ptxemu.Error."""
        out = np.full(WORDS_OF_ARRAYS, self.constants.get("Sentinel", 0), np.uint32)
        arrays = {True: out, False: self.inputs()}
        numbers = {True: self.constants.get("X", 0), False: self.constants.get("N", SIZE)}
        with ptxemu.Device(engine=engine) as device:
            given = [arrays["out" in name] if kind == "u64" else numbers[name.endswith("x")] for kind, name in self.parameters]
            ptxemu.loads(self.text, device=device)[self.entry][1, self.threads](*given)
        return out

    def verdict(self, engine: str) -> str:
        try:
            out = self.outputs(engine)
        except ptxemu.Fault as fault:
            null = self.number in CRASHES and fault.record["kind"] == "null pointer"
            return "the assembler crashes, ends at a null pointer" if null else f"FAIL: {fault}"
        except ptxemu.Error as error:
            return f"FAIL: {error}"
        if self.number in CRASHES:
            return "the assembler crashes, runs"
        if self.number in UNDEFINED:
            return "reads registers that nothing has set, runs"
        if self.number in UNSTATED:
            return "no word is stated, runs"
        wrong = {place: int(out[place]) for place, word in WORDS[self.number].items() if out[place] != word}
        return f"FAIL: {wrong}" if wrong else "right words"


def known(folder: Path) -> list[Miscompile]:
    found = []
    for one in sorted((folder / KNOWN).glob("m[0-9]*")):
        text, program = (one / "reduced.ptx").read_text(), one / "repro_nvcc_inline_ptx.cu"
        source = program.read_text() if program.exists() else ""
        entry = ENTRY.search(text)
        if entry is None:
            raise ValueError(f"{one}: no kernel")
        constants = {name: int(value.rstrip("uU"), 0) for name, value in CONSTANT.findall(source)}
        found.append(Miscompile(one, text, entry[1], PARAMETER.findall(entry[2]), constants, source))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    counted: Counter[str] = Counter()
    for one in known(given.folder):
        if given.names and not any(name in one.folder.name for name in given.names):
            continue
        for engine in ("jit", "interpreter"):
            said = one.verdict(engine)
            counted[f"{engine}: {said.partition(':')[0]}"] += 1
            if said != "right words":
                print(f"{one.folder.name}, {engine}: {said.splitlines()[0]}", flush=True)
    for what, count in counted.most_common():
        print(f"{count:5} {what}")
    return 1 if any("FAIL" in what for what in counted) else 0


if __name__ == "__main__":
    sys.exit(main())

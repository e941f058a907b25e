"""Divergent branches of vISA: every channel of a thread follows its own path (execution model; GOTO, JMP, RET)."""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptxemu
from tests.support.visa_harness import device, run

MASK32 = 0xFFFFFFFF


class Program:
    """A random program of one kernel, as text and as steps that one channel takes by itself.

    Steps: ("label", name); ("add", value); ("xor", value); ("goto", name, bits of A that make it jump, inverted, times),
    where a backward goto jumps so often at most.
    """

    def __init__(self, seed: int, size: int) -> None:
        rng = random.Random(seed)
        self.size = size
        labels = [f"L{n}" for n in range(rng.randint(2, 5))]
        self.steps: list[tuple] = []
        places = sorted(rng.sample(range(16), len(labels)))
        for place in range(16):
            if place in places:
                self.steps.append(("label", labels[places.index(place)]))
            if rng.random() < 0.4:
                name = rng.choice(labels)
                backward = ("label", name) in self.steps
                bits = 1 << rng.randrange(6) | 1 << rng.randrange(6)
                self.steps.append(("goto", name, bits, rng.random() < 0.5, rng.randint(1, 3) if backward else 0))
            else:
                self.steps.append((rng.choice(("add", "xor")), rng.randrange(1, 1 << 32)))

    def lines(self) -> list[str]:
        size = self.size
        found = []
        for number, step in enumerate(self.steps):
            if step[0] == "label":
                found.append(f"{step[1]}:")
            elif step[0] == "goto":
                _, name, bits, inverted, times = step
                found.append(f"and (M1, {size}) E(0,0)<1> A(0,0)<1;1,0> {bits}:ud")
                if times:
                    found += [f".decl C{number} v_type=G type=ud num_elts={size}",
                              f"cmp.lt (M1, {size}) P2 C{number}(0,0)<1;1,0> {times}:ud",
                              f"add (M1, {size}) C{number}(0,0)<1> C{number}(0,0)<1;1,0> 1:ud",
                              f"(!P2) mov (M1, {size}) E(0,0)<1> {0 if not inverted else 1}:ud"]  # fmt: skip
                found.append(f"cmp.ne (M1, {size}) P1 E(0,0)<1;1,0> 0:ud")
                found.append(f"({'!' if inverted else ''}P1) goto (M1, {size}) {name}")
            else:
                found.append(f"{step[0]} (M1, {size}) A(0,0)<1> A(0,0)<1;1,0> {step[1]}:ud")
        return found

    def channel(self, value: int) -> int:
        """What one channel computes alone."""
        labels = {step[1]: place for place, step in enumerate(self.steps) if step[0] == "label"}
        counts = [0] * len(self.steps)
        place = 0
        while place < len(self.steps):
            step = self.steps[place]
            if step[0] == "add":
                value = value + step[1] & MASK32
            elif step[0] == "xor":
                value ^= step[1]
            elif step[0] == "goto":
                _, name, bits, inverted, times = step
                jump = bool(value & bits) != inverted
                if times:
                    jump = jump and counts[place] < times
                    counts[place] += 1
                if jump:
                    place = labels[name]
                    continue
            place += 1
        return value


@pytest.mark.parametrize("seed", range(10))
def test_channels_go_their_own_ways(seed):
    """Execution model, "Branch Instructions": forward and backward gotos in any order, against each channel by itself."""
    size = 16 if seed == 0 else 4
    program = Program(seed, size)
    values = np.random.default_rng(seed).integers(0, 2**32, (33, size), np.uint32)
    got = run(program.lines(), {"A": values, "E": 0, "P1": 0, "P2": 0}, outputs=["A"], width=size)["A"]
    assert got.tolist() == [[program.channel(value) for value in row] for row in values.tolist()]


SKIPPED = [
    "(P1) goto (M1, 8) over",
    "add (M1_NM, 8) D(0,0)<1> D(0,0)<1;1,0> 1:ud",
    "add (M1, 8) A(0,0)<1> A(0,0)<1;1,0> 1:ud",
    "over:",
]


def test_a_thread_without_channels_skips():
    """GOTO, notes: if all channels jump, even instructions that ignore the mask are skipped; if some stay, they run."""
    words = [0, 0xFF, 0x0F, 0xFE]
    got = run(SKIPPED, {"A": 0, "D": 0, "P1": words}, outputs=["A", "D"], head=".kernel_attr SimdSize=8")
    assert got["D"].tolist() == [[0 if word == 0xFF else 1] * 8 for word in words]
    assert got["A"].tolist() == [[1 - (word >> n & 1) for n in range(8)] for word in words]


def test_execution_size_one_is_uniform():
    """GOTO, notes: with size 1 all channels branch or none, by the predicate at the mask's offset."""
    lines = [line.replace("(P1) goto (M1, 8)", "(!P1) goto (M3_NM, 1)") for line in SKIPPED]
    got = run(lines, {"A": 0, "D": 0, "P1": [0xFF, 0x100]}, outputs=["A", "D"])
    assert got["A"].tolist() == got["D"].tolist() == [[0] * 8, [1] * 8]


def test_the_rule_of_enabled_channels_holds_at_run_time():
    """ch[n] = NM ? 1 : EM[n + offset], ch[n] &= P'[n + offset], with an EM that a goto has made."""
    masks = [0x0F0F00FF, 0, 0xFFFFFFFF, 0x00FF5AA5]
    forms = [
        ("M1", ""),
        ("M3", ""),
        ("M5", "P2"),
        ("M7", "!P2"),
        ("M2", "P2.any"),
        ("M3", "!P2.all"),
        ("M7_NM", ""),
        ("M3_NM", "P2"),
    ]
    lines = ["(!P1) goto (M1, 32) far"]
    for number, (mask, guard) in enumerate(forms):
        lines.append(
            f"{f'({guard}) ' if guard else ''}TYPED_ATOMIC.ADD ({mask}, 8) T6 U.{32 * number} V0 V0 V0 A.0 V0 D.{32 * number}"
        )
    surface = device().surface(np.zeros(64 * len(masks), np.uint32), format="R32_UINT", geometry="1d")
    places = np.arange(64 * len(masks)).reshape(-1, 64)
    predicate = 0x33CC0FF0
    values = {"U": places, "A": 5, "D": 9, "P1": masks, "P2": predicate}
    got = run([*lines, "far:"], values, surface, ["D"], width=64)["D"]
    texels = surface.copy_to_host().reshape(-1, 64)
    for thread, mask in enumerate(masks):
        if mask == 0:  # the thread goes to the label
            assert not texels[thread].any() and (got[thread] == 9).all()
            continue
        for number, (text, guard) in enumerate(forms):
            offset = 4 * (int(text[1]) - 1)
            bits = [bool(predicate >> offset + n & 1) for n in range(8)]
            bits = [any(bits)] * 8 if "any" in guard else [all(bits)] * 8 if "all" in guard else bits
            on = [(bit != guard.startswith("!") or not guard) and ("NM" in text or bool(mask >> offset + n & 1))
                  for n, bit in enumerate(bits)]  # fmt: skip
            part = slice(8 * number, 8 * number + 8)
            assert texels[thread, part].tolist() == [5 * bit for bit in on], (text, guard)
            assert got[thread, part].tolist() == [0 if bit else 9 for bit in on]


def test_channels_return():
    """RET, notes: channels of a larger size end; the thread ends with the last one, or goes where others wait."""
    lines = [
        "(P1) goto (M1, 8) later", "(P2) ret (M1, 8)", "add (M1_NM, 8) D(0,0)<1> D(0,0)<1;1,0> 1:ud",
        "add (M1, 8) A(0,0)<1> A(0,0)<1;1,0> 1:ud", "later:", "add (M1, 8) A(0,0)<1> A(0,0)<1;1,0> 2:ud", "ret (M1, 8)",
        "mov (M1_NM, 8) D(0,0)<1> 99:ud",
    ]  # fmt: skip
    cases = [(0, 0), (0x0F, 0xFF), (0x0F, 0x30), (0, 0xFF), (0xFF, 0xFF)]
    values = {"A": 0, "D": 0, "P1": [a for a, _ in cases], "P2": [b for _, b in cases]}
    got = run(lines, values, outputs=["A", "D"], head=".kernel_attr SimdSize=8")
    for index, (first, second) in enumerate(cases):
        want = [2 if first >> n & 1 else 0 if second >> n & 1 else 3 for n in range(8)]
        assert got["A"][index].tolist() == want
        assert got["D"][index].tolist() == [int(any(not (first | second) >> n & 1 for n in range(8)))] * 8


def test_the_examples_of_the_execution_model():
    """Execution model, "Branch Instructions": if, else and end, nested; and a loop with an early end."""
    lines = [
        "cmp.ne (M1, 8) P1 A(0,0)<1;1,0> 0:ud", "(!P1) goto (M1, 8) ELSE1", "cmp.gt (M1, 8) P2 A(0,0)<1;1,0> 2:ud",
        "(!P2) goto (M1, 8) ENDIF2", "mov (M1, 8) D(0,0)<1> 7:ud", "ENDIF2:", "goto (M1, 8) ENDIF1", "ELSE1:",
        "mov (M1, 8) D(0,0)<1> 5:ud", "ENDIF1:",
        "LOOP:", "cmp.eq (M1, 8) P2 A(0,0)<1;1,0> 5:ud", "(P2) goto (M1, 8) LOOP_END", "add (M1, 8) A(0,0)<1> A(0,0)<1;1,0> 1:ud",
        "add (M1, 8) E(0,0)<1> E(0,0)<1;1,0> 1:ud", "cmp.lt (M1, 8) P1 E(0,0)<1;1,0> 4:ud", "(P1) goto (M1, 8) LOOP", "LOOP_END:",
    ]  # fmt: skip
    values = {"A": [0, 1, 2, 3, 4, 5, 6, 7], "D": 0, "E": 0, "P1": 0, "P2": 0}
    got = run(lines, values, outputs=["A", "D", "E"])
    assert got["D"][0].tolist() == [5, 0, 0, 7, 7, 7, 7, 7]
    assert got["A"][0].tolist() == [4, 5, 5, 5, 5, 5, 10, 11]
    assert got["E"][0].tolist() == [4, 4, 3, 2, 1, 0, 4, 4]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("goto (M1, 8) nowhere", "2:14: unknown label 'nowhere'"),
        ("goto (M1, 8) 5", "2:14: expected a label"),
        ("jmp (M1, 8) x\nx:", "2:10: the execution size of 'jmp' is 1, not 8"),
        ("ret (M1, 1)\n.em 0xff", "3:1: '.em' must precede the instructions of its kernel"),
        ("x:\n.kernel_attr SimdSize=8", "3:1: '.kernel_attr' must precede the instructions of its kernel"),
    ],
)
def test_errors(lines, message):
    (found,) = ptxemu.lint(f".kernel k\n{lines}", dialect="visa")
    assert f"{found.line}:{found.column}: {found.message}" == message


def test_branches_beyond_the_mask_do_nothing():
    """Channels that never start do not jump: an empty mask, and a span outside of it."""
    lines = [
        "again:",
        "goto (M5, 8) again",
        "goto (M1, 8) out",
        "ret (M1, 8)",
        "add (M1_NM, 8) D(0,0)<1> D(0,0)<1;1,0> 1:ud",
        "out:",
    ]
    assert run(lines, {"D": 0}, outputs=["D"], head=".em 0")["D"].tolist() == [[1] * 8]
    assert run(lines, {"D": 0}, outputs=["D"], head=".em 0xff00")["D"].tolist() == [[1] * 8]

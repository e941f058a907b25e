"""Numbers that 16 bits hold: computed in 16 bits, they are what they are in 32."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support import processors
from tests.support.kernel_tools import kernel

PARAMETERS = ".param .u64 bytes, .param .u64 out, .param .u32 any"
HEAD = """
  ld.param.u64 %rd1, [bytes]; ld.param.u64 %rd2, [out]; ld.param.u32 %r50, [any]; and.b32 %r51, %r50, 4095; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 2; add.u64 %rd1, %rd1, %rd3; mul.wide.u32 %rd3, %r1, 64; add.u64 %rd2, %rd2, %rd3;
"""
WORDS = 16  # that a thread writes
SMALL = ["u8", "s8", "u16", "s16"]
NUMBERS = [0, 1, 2, 3, 7, 77, 127, 128, 150, 255, 256, 300, 1000, 32767, 32768, 65535, -1, -2, -128, -300]


class Generator:
    """A kernel of random arithmetic on bytes and half words."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines = random, [HEAD]
        self.words, self.halves, self.predicates = ["%r50", "%r51", "%r1"], ["%h0"], 0
        self.lines.append("ld.global.u8 %h0, [%rd1+5];")

    def number(self) -> str:
        return str(self.random.choice(NUMBERS))

    def word(self) -> str:
        return self.random.choice(self.words[-8:] + self.words[:3])

    def either(self) -> str:
        return self.word() if self.random.random() < 0.7 else self.number()

    def new(self) -> str:
        self.words.append(f"%r{len(self.words)}")
        return self.words[-1]

    def emit(self) -> None:
        random = self.random
        kind = random.choice(
            ["load"] * 3 + ["half", "two"] * 2 + ["two"] * 4 + ["one", "shift", "shift", "mad", "wide", "choice", "back"]
        )
        a, b = self.word(), self.either()
        sign = random.choice("us")
        if kind == "load":
            self.lines.append(f"ld.global.{random.choice(SMALL)} {self.new()}, [%rd1+{2 * random.randrange(8)}];")
        elif kind == "half":
            self.halves.append(f"%h{len(self.halves)}")
            self.lines.append(f"ld.global.{random.choice(SMALL)} {self.halves[-1]}, [%rd1+{2 * random.randrange(8)}];")
            self.lines.append(f"cvt.{sign}32.{random.choice('us')}{random.choice(['16', '8'])} {self.new()}, {self.halves[-1]};")
        elif kind == "two":
            op = random.choice(
                [
                    f"add.{sign}32",
                    f"sub.{sign}32",
                    f"mul.lo.{sign}32",
                    f"min.{sign}32",
                    f"max.{sign}32",
                    "and.b32",
                    "or.b32",
                    "xor.b32",
                ]
            )
            self.lines.append(f"{op} {self.new()}, {a}, {b};")
        elif kind == "one":
            self.lines.append(f"{random.choice(['abs.s32', 'neg.s32', 'not.b32'])} {self.new()}, {a};")
        elif kind == "shift":
            op = random.choice(["shl.b32", "shr.u32", "shr.s32", "shr.b32"])
            self.lines.append(f"{op} {self.new()}, {a}, {random.choice([0, 1, 2, 5, 8, 15, 16, 20, 31, 40])};")
        elif kind == "mad":
            self.lines.append(f"mad.lo.{sign}32 {self.new()}, {a}, {b}, {self.either()};")
        elif kind == "wide":
            half = random.choice(self.halves)
            op = f"mul.wide.{sign}16 {{}}, {half}, {random.choice([1, 2, 5, 255, 32767])};"
            self.lines.append(
                random.choice([op, f"mad.wide.{sign}16 {{}}, {half}, {random.choice(self.halves)}, {a};"]).format(self.new())
            )
        elif kind == "choice":
            order = random.choice(["lt", "le", "eq", "ne", "gt"])
            self.lines.append(f"setp.{order}.{sign}32 %p{self.predicates % 8}, {a}, {b};")
            self.lines.append(f"selp.b32 {self.new()}, {self.word()}, {self.either()}, %p{self.predicates % 8};")
            self.predicates += 1
        else:
            self.halves.append(f"%h{len(self.halves)}")
            self.lines.append(f"cvt.{sign}16.{random.choice('us')}32 {self.halves[-1]}, {a};")

    def text(self) -> str:
        while len(self.words) < 40 and len(self.halves) < 20:
            self.emit()
        results = self.words[3:]
        for place in range(WORDS):
            size = self.random.choice(["u8", "u16", "u32", "u8"])
            self.lines.append(f"st.global.{size} [%rd2+{4 * place}], {self.random.choice(results)};")
        return kernel("\n".join(self.lines), PARAMETERS)


def outcome(engine: str, text: str, data: np.ndarray) -> np.ndarray:
    out = np.zeros((64, WORDS), np.uint32)
    with ptxemu.Device("4 MiB", engine=engine, workers=1) as device:
        ptxemu.loads(text, device=device, tier="best")["k"][1, 64](data.copy(), out, 0x12345)
    return out


def compare(seed: int) -> None:
    text = Generator(Random(seed)).text()
    data = np.random.default_rng(seed).integers(0, 256, 256).astype(np.uint8)
    data[: seed % 5 * 20] = np.random.default_rng(seed).choice([0, 127, 128, 255], seed % 5 * 20)
    np.testing.assert_array_equal(outcome("jit", text, data), outcome("interpreter", text, data))


@pytest.mark.parametrize("seed", range(60))
def test_results_are_those_of_the_interpreter(seed: int) -> None:
    compare(seed)


@pytest.mark.parametrize("seed", range(60, 70))
def test_results_without_avx512(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    processors.without_avx512(monkeypatch, tmp_path)
    compare(seed)


def test_some_are_computed_in_16_bits() -> None:
    texts = (Generator(Random(seed)).text() for seed in range(60))
    assert sum(".narrow" in compile.emit_ir(compile.front(text), "k", compile.Options()) for text in texts) > 20


def test_what_is_read_at_once_stays_as_it_is() -> None:
    text = kernel(HEAD + "ld.global.u8 %r3, [%rd1]; cvt.rn.f32.u32 %f1, %r3; st.global.f32 [%rd2], %f1;", PARAMETERS)
    assert ".narrow" not in compile.emit_ir(compile.front(text), "k", compile.Options())


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v4"])
def test_code_for_other_processors(cpu: str) -> None:
    for seed in range(5):
        assert compile.emit(compile.front(Generator(Random(seed)).text()), "k", compile.Options(cpu=cpu), "obj")


def test_code_for_aarch64(monkeypatch: pytest.MonkeyPatch) -> None:
    processors.aarch64(monkeypatch, "generic")
    for seed in range(5):
        assert compile.emit(compile.front(Generator(Random(seed)).text()), "k", compile.Options(), "obj")

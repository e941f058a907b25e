"""Whether machine code computes what ptxemu does."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tests.isa import oracles
from tests.isa.forms import COUNT, Form, Operand
from tests.support.machine import conversions, floats, halves, integers, special
from tests.support.machine.assembler import RESERVED, RESULTS, Sequence
from tests.support.machine.thread import METHODS, NotModelled, Thread

FRAME = 4096
GUESSES = 2
NOT_MODELLED = "not modelled: "
INSTRUCTIONS = (conversions, floats, halves, integers, special)
"""The modules that add to ``METHODS``."""
assert METHODS


class Judged:
    """A form, with what ptxemu computes of ``form.inputs``."""

    def __init__(self, form: Form, results: list[np.ndarray]) -> None:
        self.form, self._results = form, results
        self._seen: dict[str, str] = {}

    @cached_property
    def _rows(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Operands and results of each run."""
        return list(zip(_numbers(self.form.inputs), _numbers(self._results), strict=True))

    def verdict(self, sequence: Sequence) -> str:
        """Empty if all results are equal, else the first that is not, or what is not modelled."""
        text = sequence.function.text
        if text not in self._seen:
            self._seen[text] = self._judge(sequence)
        return self._seen[text]

    def _judge(self, sequence: Sequence) -> str:
        wrong, first = 0, ""
        for operands, results in self._rows:
            try:
                found = self._run(sequence, operands)
            except NotModelled as reason:
                return f"{NOT_MODELLED}{reason}"
            if not all(map(_same, self.form.results, found, results)):
                wrong += 1
                first = first or f"of {_hex(operands)} {_hex(found)}, here {_hex(results)}"
        return f"{wrong} of {len(self._rows)} differ: {first}" if wrong else ""

    def _run(self, sequence: Sequence, operands: tuple[int, ...]) -> tuple[int, ...]:
        """The results of a thread, which are the same with all guesses."""
        first, unknown = self._guessed(sequence, operands, 0)
        for guess in range(1, GUESSES if unknown else 1):
            other, _ = self._guessed(sequence, operands, guess)
            if not all(map(_same, self.form.results, first, other)):
                raise NotModelled(unknown)
        return first

    def _guessed(self, sequence: Sequence, operands: tuple[int, ...], guess: int) -> tuple[tuple[int, ...], str]:
        shared = bytearray(RESERVED + FRAME)
        values = iter(operands)
        for place, operand in enumerate(self.form.operands):
            if not operand.result:
                _write(shared, sequence.base + 16 * place, operand, next(values))
        thread = Thread(sequence.function, shared, sequence.constants, guess)
        thread.run()
        base = sequence.base + RESULTS
        found = (shared[base + 16 * place :][: operand.stored] for place, operand in enumerate(self.form.results))
        return tuple(int.from_bytes(part, "little") for part in found), thread.unknown


def _numbers(columns: list[np.ndarray]) -> list[tuple[int, ...]]:
    rows = ([int.from_bytes(item.tobytes(), "little") for item in column] for column in columns)
    return list(zip(*rows, strict=True)) if columns else [()] * COUNT


def _write(shared: bytearray, at: int, operand: Operand, value: int) -> None:
    size = 4 if operand.type == "pred" else operand.bits // 8
    shared[at : at + size] = value.to_bytes(size, "little")


def _same(operand: Operand, got: int, want: int) -> bool:
    return oracles.same(operand.type, got, want)


def _hex(values: tuple[int, ...]) -> str:
    return ", ".join(f"{value:#x}" for value in values) or "nothing"

"""Programs of the sister instruction sets with tokens changed, launched with hostile arguments."""

from __future__ import annotations

import random

from tests.fuzz.dialects import DIALECTS, target
from tests.fuzz.hostile import values
from tests.fuzz.hostile.mutants import argument, small
from tests.fuzz.hostile.program import Launch, Program

OPTIONS = {"ctm": {"tiling": "ignore"}}
SHAPES = ((1, 1, 1), (4, 1, 1), (16, 1, 1), (8, 8, 1))
COLUMNS = 16


def launch(rng: random.Random) -> Launch:
    data = tuple(values.column(rng, rng.choice((small, values.value))) for _ in range(COLUMNS))
    arguments = tuple(argument(rng) for _ in range(5))
    numbers = tuple(small(rng) for _ in range(5))
    return Launch("", rng.choice(((1, 1, 1), (2, 2, 1))), rng.choice(SHAPES), arguments, numbers, data)


def program(rng: random.Random) -> Program:
    dialect = rng.choice(DIALECTS)
    one = target(dialect)
    text = one.mutated(rng, rng.choice(one.sources))
    bind = {"": rng.choice(("s.2d", "s.2d", "s.2d", "s.1d", "s.3d", "s.a2d", "s.packed", "s.levels"))}
    return Program(text, tuple(launch(rng) for _ in range(4)), dialect, bind=bind, options=OPTIONS.get(dialect, {}))

"""A plugin of pytest: random numbers that CuPy's tests start from are NumPy's, as cuRAND does not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

NAMES = ("random", "rand", "randn", "randint", "uniform", "normal", "random_sample", "standard_normal", "permutation")


def by_numpy(name: str) -> Callable[..., Any]:
    generate = getattr(np.random, name)

    def generated(*arguments: Any, dtype: Any = None, **others: Any) -> Any:
        return cupy.asarray(np.asarray(generate(*arguments, **others)).astype(dtype))

    return generated


for _name in NAMES:
    setattr(cupy.random, _name, by_numpy(_name))

"""All results of tensor cores in a checkout of north-numerical-computing/MATLAB-tensor-core against ptxemu's.

    python -m tests.fuzz.tensor_cores CHECKOUT [--write ROWS]

``--write`` makes the sample of the tests of the first rows of each set.  The exit code is 1 if a word differs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from tests.matrix.test_matrix import kernel
from tests.support.tensor_core_sets import computed, instruction, public_sets, write_sample


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--write", type=int, metavar="ROWS")
    given = parser.parse_args()
    folder = given.checkout / "model_validation"
    if given.write:
        write_sample(folder, given.write)
        return 0
    words = wrong = 0
    for one in public_sets(folder):
        got = computed(one, kernel(instruction(one)))
        differs = int(np.count_nonzero(got != one.d[: len(got)]))
        print(f"{one.name}: {len(got)} words, {differs} differ", flush=True)
        words, wrong = words + len(got), wrong + differs
    print(f"{words} words, {wrong} differ")
    return 1 if wrong or not words else 0


if __name__ == "__main__":
    sys.exit(main())

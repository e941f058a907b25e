"""Hostile programs run in a process of their own, so that a crash or a hang of it is a failed test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence

CHILD = """
import json, sys
import numpy as np
import ptxemu
text, grid, block, tries, device, options = json.load(sys.stdin)
device = ptxemu.Device(**{"memory": "64 MiB", "workers": 2, **device})
found, module = [], None
for arguments in tries:
    arrays = [np.zeros(n["zeros"], np.uint32) if isinstance(n, dict) else n for n in arguments]
    try:
        module = module or ptxemu.loads(text, filename="test.ptx", device=device)
        module["k"][grid, block](*arrays, **{"timeout": 20, "printf": lambda text: None, **options})
        said = "ended"
    except ptxemu.Error as error:
        said = f"{type(error).__name__}: {error}"
    found.append([said, *(array.tolist() for array in arrays if isinstance(array, np.ndarray))])
print(json.dumps(found))
"""
HANG = 100  # seconds; a launch ends after 20 by itself


def outcome(text: str, *arguments: object, **settings: object) -> str:
    """``ended`` or the error of a launch of the kernel ``k``; ``{"zeros": n}`` is an array of n words."""
    return outcomes(text, [arguments], **settings)[0][0]


def outcomes(
    text: str,
    tries: Iterable[Sequence[object]],
    *,
    grid: object = 1,
    block: object = 32,
    device: object = None,
    **options: object,
) -> list[list[str]]:
    """Launches with several lists of arguments, one after the other: what each has ended with, and its arrays."""
    given = json.dumps([text, grid, block, [list(arguments) for arguments in tries], device or {}, options])
    done = subprocess.run([sys.executable, "-c", CHILD], input=given, capture_output=True, text=True, timeout=HANG, check=False)
    name = signal.Signals(-done.returncode).name if done.returncode < 0 else str(done.returncode)
    assert done.returncode == 0, f"the process ended with {name}: {done.stderr[-2000:]}"
    assert done.stderr == ""
    return list(json.loads(done.stdout))

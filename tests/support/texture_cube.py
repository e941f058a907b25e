"""The faces of a cube: +x, -x, +y, -y, +z, -z, as OpenGL's table has them ("Cube Map Texture Selection")."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

# For each face the axis and sign of s, t and of the way out.
FACES = (
    ((2, -1), (1, -1), (0, 1)), ((2, 1), (1, -1), (0, -1)), ((0, 1), (2, 1), (1, 1)),
    ((0, 1), (2, -1), (1, -1)), ((0, 1), (1, -1), (2, 1)), ((0, -1), (1, -1), (2, -1)),
)  # fmt: skip


def face_of(direction: Sequence[Any]) -> int:
    """Of the largest component; of equal ones z goes before y before x."""
    x, y, z = direction
    if abs(z) >= abs(x) and abs(z) >= abs(y):
        axis = 2
    else:
        axis = 1 if abs(y) >= abs(x) else 0
    return 2 * axis + bool(direction[axis] < 0)


@cache
def neighbours(n: int) -> dict[tuple[int, int, int], tuple[int, int, int]]:
    """(face, i, j) one step over an edge: the texel beyond, found as the other owner of the same piece of edge."""
    owners: dict[tuple[int, ...], list[tuple[tuple[int, int, int], tuple[int, int, int]]]] = {}
    for face, k in itertools.product(range(6), range(n)):
        for i, j, beyond, s, t in (
            (0, k, (face, -1, k), -n, 2 * k + 1 - n), (n - 1, k, (face, n, k), n, 2 * k + 1 - n),
            (k, 0, (face, k, -1), 2 * k + 1 - n, -n), (k, n - 1, (face, k, n), 2 * k + 1 - n, n),
        ):  # fmt: skip
            point = [0, 0, 0]
            for value, (axis, sign) in zip((s, t, n), FACES[face]):
                point[axis] = value * sign
            owners.setdefault(tuple(point), []).append(((face, i, j), beyond))
    result = {}
    for (texel, beyond), (other, other_beyond) in owners.values():
        result[beyond], result[other_beyond] = other, texel
    return result

"""Input for Rodinia's programs, whose own is not in its repository: small, and the same every time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

GRID = 64


def graph(path: Path, nodes: int = 4096, degree: int = 4) -> None:
    """A graph for bfs: where each node's edges begin and how many there are, the source, and targets with costs."""
    ends = np.random.default_rng(1).integers(0, nodes, nodes * degree)
    starts = "\n".join(f"{node * degree} {degree}" for node in range(nodes))
    path.write_text(f"{nodes}\n{starts}\n\n0\n\n{len(ends)}\n" + "\n".join(f"{end} 1" for end in ends) + "\n")


def column(path: Path, low: float, high: float, count: int) -> None:
    np.savetxt(path, np.random.default_rng(2).uniform(low, high, count), fmt="%.6f")


def mesh(path: Path, columns: int = 24, rows: int = 16) -> None:
    """A plane of cells for cfd: each with its volume, and the neighbour and the outward normal of its four faces.

    The lower side is a wall (-1), the others are far away (-2); neighbours count from 1.
    """
    lines = [str(columns * rows)]
    for cell in range(columns * rows):
        x, y = cell % columns, cell // columns
        sides = [
            (cell - 1 if x else -3, "-1 0 0"),
            (cell + 1 if x + 1 < columns else -3, "1 0 0"),
            (cell - columns if y else -2, "0 -1 0"),
            (cell + columns if y + 1 < rows else -3, "0.2 0.98 0" if x == columns // 2 else "0 1 0"),
        ]
        lines.append("1.0 " + " ".join(f"{neighbour + 1} {normal}" for neighbour, normal in sides))
    path.write_text("\n".join(lines) + "\n")


def image(path: Path) -> None:
    """A picture with speckles for srad, as text."""
    y, x = np.mgrid[:GRID, :GRID]
    noise = np.random.default_rng(3).uniform(0.5, 1.5, (GRID, GRID))
    pixels = np.clip((100 + 60 * (np.hypot(x - GRID / 2, y - GRID / 2) < GRID / 4)) * noise, 1, 255).astype(int)
    path.write_text(f"P2\n{GRID} {GRID}\n255\n" + "\n".join(" ".join(map(str, row)) for row in pixels) + "\n")


def hurricanes(path: Path, count: int = 2000) -> None:
    """Records for nn, 48 characters each, and the list that names their file."""
    random = np.random.default_rng(4)
    places = zip(random.uniform(7, 60, count), random.uniform(0, 99, count), strict=True)
    records = path.with_name("hurricanes.db")
    records.write_text("".join(f"{i:027d} {lat:5.1f}{lon:5.1f}".ljust(48) + "\n" for i, (lat, lon) in enumerate(places)))
    path.write_text(f"{records}\n")


def tree(path: Path, count: int = 4000, commands: str = "j 600 300\nk 1000\n") -> None:
    """Keys for b+tree, behind their number, and the commands: ranges, then single keys."""
    keys = np.random.default_rng(5).permutation(count)
    path.write_text(f"{count}\n" + "\n".join(map(str, keys)) + "\n")
    path.with_name("tree.commands").write_text(commands)


def symbols(path: Path, count: int = 65536) -> None:
    """Bytes for huffman, some more frequent than others."""
    path.write_bytes(np.random.default_rng(6).geometric(0.1, count).clip(1, 64).astype(np.uint8).tobytes())


FILES: dict[str, Callable[[Path], None]] = {
    "graph.txt": graph,
    "temperatures.txt": lambda path: column(path, 320, 340, 8 * GRID**2),
    "powers.txt": lambda path: column(path, 0, 0.01, 8 * GRID**2),
    "mesh.txt": mesh,
    "srad/image.pgm": image,
    "hurricanes.txt": hurricanes,
    "tree.txt": tree,
    "symbols.bin": symbols,
}


def write(folder: Path) -> None:
    """Writes all files below a folder."""
    for name, make in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)

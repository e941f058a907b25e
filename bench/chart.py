"""What docs/performance.md says of kernels, from measurements: a file of ratios, and a chart of them.

    python bench/run.py --json out/1.json ... ; python bench/chart.py out/1.json ...

Each file is of one process. bench/measured.json gets the median of the wall times as multiples of C's, from which the table in
docs/performance.md is copied; docs/pictures/kernels.svg is drawn from it. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "bench" / "measured.json"
CHART = ROOT / "docs" / "pictures" / "kernels.svg"
MEAN = "geometric mean"
Ratios: TypeAlias = dict[str, dict[str, float]]  # of kernels, by sides


def medians(files: list[Any], measure: str = "wall") -> Ratios:
    """The ratios to C over several results of bench/run.py, which have the same kernels and sides."""
    found: dict[str, dict[str, list[float]]] = {}
    for rows in (file["kernels"] for file in files):
        for row in rows:
            for side, cost in row["costs"].items():
                if side != "C":
                    ratios = found.setdefault(row["name"], {}).setdefault(side, [])
                    ratios.append(cost[measure] / row["costs"]["C"][measure])
    return {name: {side: round(median(ratios), 3) for side, ratios in sides.items()} for name, sides in found.items()}


def with_mean(ratios: Ratios) -> Ratios:
    """And the geometric mean of each side."""
    sides = next(iter(ratios.values()))
    return {**ratios, MEAN: {side: geometric_mean(row[side] for row in ratios.values() if side in row) for side in sides}}


def shown(ratio: float | None) -> str:
    """Two significant digits."""
    if ratio is None:
        return "-"
    if ratio < 0.995:
        return f"{ratio:.2g}"
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


def draw(ratios: Ratios, path: Path) -> None:
    """A row of dots for each kernel, on a logarithmic scale."""
    import matplotlib as mpl  # here, so that the figures can be read without it
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "ptxemu"  # so that the same figures give the same file
    rows = with_mean(ratios)
    figure = Figure(figsize=(7.5, 0.32 * len(rows) + 1), layout="constrained")
    axes = figure.subplots()
    for marker, side in zip("osD^v", rows[MEAN], strict=False):
        places = [(row[side], -place) for place, row in enumerate(rows.values()) if side in row]
        axes.plot(*zip(*places, strict=True), marker, label=side, markersize=6)
    axes.axvline(1, color="gray", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}")
    axes.set_yticks([-place for place in range(len(rows))], list(rows))
    axes.set_xlabel("Wall time as a multiple of C's: less is faster")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="JSON", help="none: draw bench/measured.json again")
    files = parser.parse_args().files
    if files:
        MEASURED.write_text(json.dumps(medians([json.loads(file.read_text()) for file in files]), indent=2) + "\n")
    ratios = json.loads(MEASURED.read_text())
    draw(ratios, CHART)
    for name, row in with_mean(ratios).items():
        print(" | ".join([f"| {name}", *(shown(row.get(side)) for side in next(iter(ratios.values())))]), "|")


if __name__ == "__main__":
    main()

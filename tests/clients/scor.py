"""The microbenchmarks of ScoR under the checker ``race``: scoped races, which are to be found, and programs that have none.

``python -m tests.clients.scor DIRECTORY``: a checkout of https://github.com/csl-iisc/ScoR, of the authors of iGUARD. The names of
its programs say whether they race. nvcc compiles them all together.

They declare their data ``volatile``, so that compilers keep accesses. In the memory model of PTX such accesses are strong, and
do not race with each other, so the word is left out.

Whether a race is there to be found may depend on which block comes first: each program has several launches.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ptxemu
from tests.clients.indigo import Tally

UNIT = 'namespace {name} {{\n#include "{path}"\n}}\n'
LAUNCHES = 20
TIMEOUT = 30.0
BY_CHANCE = {
    "race_interblock_lock-blkfence_waw",
    "race_interblock_lock-no-stf_waw",
    "race_interwarp_blklock-no-stf_waw",
    "race_interwarp_dev-blklock-no-stf_waw",
}
"""What takes a lock without a fence behind it, or with one for the block alone. That is found where it comes second: as a rule it
comes first, and then nothing is there that it could miss."""


def compiled(programs: list[Path], folder: Path) -> str:
    """Their PTX."""
    units = ["#include <stdio.h>\n"]
    for path in programs:
        copy = folder / path.name
        copy.write_text(path.read_text().replace("volatile ", "").replace("int main", "static int host"))
        units.append(UNIT.format(name=name_of(path), path=copy))
    unit = folder / "all.cu"
    unit.write_text("".join(units))
    command = ["nvcc", "-ptx", "-lineinfo", "-w", "-arch=sm_80", "-o", unit.with_suffix(".ptx"), unit]
    subprocess.run(command, check=True)
    return unit.with_suffix(".ptx").read_text()


def name_of(path: Path) -> str:
    return path.stem.replace("-", "_")


def size_of(path: Path, name: str) -> int:
    found = re.search(rf"#define {name}\s+(\d+)", path.read_text())
    assert found is not None
    return int(found[1])


def findings(text: str, path: Path) -> list[str]:
    """What is said of a program, by the first launches of which anything is."""
    with ptxemu.Device(check="race", memory="256 MiB") as device:
        assert device.checks is not None
        for _ in range(LAUNCHES):
            module = ptxemu.loads(text, device=device)  # with its variables as they are at first
            launch = module[f"{name_of(path)}::kmain"][size_of(path, "NBLOCKS"), size_of(path, "TPERBLK")]
            launch(device.to_device(np.zeros(1, np.uint32)), timeout=TIMEOUT)
            if found := [str(finding) for finding in device.checks.findings]:
                return found
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    given = parser.parse_args()
    programs = sorted((given.folder.resolve() / "microbenchmarks" / "src").glob("*.cu"))
    with tempfile.TemporaryDirectory() as folder:
        text = compiled(programs, Path(folder))
    tally, wrong = Tally(), set()
    for path in programs:
        planted, found = path.stem.startswith("race"), findings(text, path)
        tally.add(planted, bool(found))
        if planted != bool(found):
            wrong.add(path.stem)
            print(f"{path.stem}: {'missed' if planted else 'false alarm'}", *found, sep="\n")
    print(f"race: {tally}")
    return int(wrong - BY_CHANCE != set())


if __name__ == "__main__":
    sys.exit(main())

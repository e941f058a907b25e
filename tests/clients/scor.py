"""The microbenchmarks of ScoR under the checker ``race``: scoped races, which are to be found, and programs that have none.

``python -m tests.clients.scor DIRECTORY``: a checkout of https://github.com/csl-iisc/ScoR, of the authors of iGUARD. nvcc compiles all
programs together. Their names say whether they race.

They declare their data ``volatile``, so that compilers keep the accesses. In the memory model of PTX such accesses are strong, and do
not race with each other. So the word is left out, but for programs whose accesses a compiler would merge then.
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

UNIT = 'namespace {name} {{\n#include "{path}"\n}}\n'
SEEDS = 8
TIMEOUT = 30.0


def compiled(programs: list[Path], folder: Path) -> str:
    """Their PTX."""
    for path in programs:
        text = path.read_text().replace("volatile ", "").replace("int main", "static int host_main")
        (folder / path.name).write_text(text)
    unit = folder / "all.cu"
    unit.write_text(
        "#include <stdio.h>\n" + "".join(UNIT.format(name=name_of(path), path=folder / path.name) for path in programs)
    )
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
    with ptxemu.Device(check="race", memory="256 MiB") as device:
        module = ptxemu.loads(text, device=device)
        launch = module[f"{name_of(path)}::kmain"][size_of(path, "NBLOCKS"), size_of(path, "TPERBLK")]
        launch(device.to_device(np.zeros(64, np.uint32)), timeout=TIMEOUT)
        assert device.checks is not None
        return [str(finding) for finding in device.checks.findings]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    given = parser.parse_args()
    programs = sorted((given.folder.resolve() / "microbenchmarks" / "src").glob("*.cu"))
    with tempfile.TemporaryDirectory() as folder:
        text = compiled(programs, Path(folder))
    for path in programs:
        planted = path.stem.startswith("race")
        told = findings(text, path)
        if planted != bool(told): print(path.stem, planted, bool(told), told)
    return 0


if __name__ == "__main__":
    sys.exit(main())

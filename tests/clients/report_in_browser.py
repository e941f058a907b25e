"""The page of ``ptxemu test --html`` in Chromium: ``python -m tests.clients.report_in_browser``.

Chromium is one that is installed (``apt-get install chromium``) or the one that CHROMIUM names; Playwright drives it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from ptxemu.cli import run
from tests.clients.environment import python_of
from tests.support import api_kernels as ptx
from tests.support.places import TESTS

PLAYWRIGHT = ["playwright==1.55.0", "numpy", "pillow"]
NAMES = ("chromium", "chromium-browser", "google-chrome")
HOSTILE = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"
PICTURE = f"""
title = '{HOSTILE}'
ptx = "k.ptx"
grid = 1
block = 1
args = {{ n = 0, a = 1, x = 0, y = 0 }}
buffers = {{ p = {{ png = "actual.png" }} }}
expect = {{ outputs = {{ p = {{ png = "expected.png" }} }} }}
"""
SECONDS = 300


def make_suite(folder: Path) -> None:
    """A case with a picture that is wrong in a few pixels, one that faults and one that passes."""
    rng = np.random.default_rng(3)
    expected = rng.integers(0, 256, (6, 8, 3), np.uint8)
    actual = expected.copy()
    actual[1, 1] ^= 128
    actual[4, 6, 2] ^= 64
    for name, array in (("actual", actual), ("expected", expected)):
        Image.fromarray(array).save(folder / f"{name}.png")
    (folder / "k.ptx").write_text(ptx.SAXPY)
    (folder / "picture.toml").write_text(PICTURE)
    (folder / "right.toml").write_text(PICTURE.replace("expected.png", "actual.png").replace(HOSTILE, "right"))
    (folder / "fault.toml").write_text(PICTURE.replace("n = 0", "n = 1").replace(HOSTILE, "fault"))


def main() -> int:
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        print("report: not opened: there is no Chromium (apt-get install chromium)")
        return 1
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as name:
        folder = Path(name)
        make_suite(folder)
        for _ in range(2):  # the second has times to compare with
            assert run(["test", str(folder), "--html", str(folder)]) == 1
        command = [python_of("browser", PLAYWRIGHT), TESTS / "clients" / "programs" / "report_program.py", folder, chromium]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        right = done.returncode == 0 and done.stdout.splitlines()[-1:] == ["right"]
    print(f"report in {chromium}: {'passed' if right else 'FAILED: ' + done.stderr.strip()}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

"""A fuzz target for the host side: no case file or command line, however malformed, may end in anything but a documented code.

    python -m tests.fuzz.host [--iterations N] [--seconds S] [--seed K]

Cases with every kind of table are mutated and run. What fails is kept in a folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ptxemu.cli import run
from tests.fuzz.front import limit_memory, time_limit
from tests.support import api_kernels as ptx

SEED = 20250
HANG = 30  # seconds of processor time after which a case counts as one that hangs
CODES = {0, 1, 2, 3}
CASES = (
    """
ptx = "saxpy.ptx"
grid = "${(n + block - 1) // block}"
block = "${block}"
args = { n = "${n}", a = 2.0, x = { zeros = { dtype = "f${bits}", shape = "${n}" } }, y = { npy = "y.npy" } }
[[matrix]]
n = [8, 4]
block = [[32, 1], [64]]
[[matrix]]
points = [{ bits = 32, n = 1 }, { bits = 64, n = 2 }]
block = [32]
[expect.outputs.y]
npy = "y.npy"
fraction = 0.5
psnr = 20
""",
    """
title = "one launch"
ptx = "saxpy.ptx"
entry = "saxpy"
grid = [1, 1, 1]
block = 32
shared = 16
timeout = 1.5
cooperative = false
[args]
n = 8
a = 2.0
x = { random = { dtype = "f32", shape = [2, 4], seed = 1, low = -1, high = 1 } }
y = { npy = "y.npy" }
[expect]
tolerance = { abs = 1e-6, rel = 0, ulp = 2 }
[expect.outputs.y]
expression = "a * x.ravel()[:n] + np.ones(8, 'f4')"
rel = 1e-5
[save]
y = "below/y.npy"
""",
    """
ptx = "surfaces.ptx"
[buffers]
values = { values = [[1, 2], [3, 4]], dtype = "u32" }
picture = { png = "p.png" }
steps = { arange = { dtype = "s16", shape = 5, start = 2, step = -1 } }
small = { full = { dtype = "bf16", shape = 3, value = 1.5 } }
[surfaces.s]
geometry = "1d"
format = "R32_UINT"
layout = "linear"
width = 64
[surfaces.t]
geometry = "3d"
format = "R8G8B8A8_UNORM"
layout = "block_linear"
width = 4
height = 2
depth = 3
block_height_log2 = 1
[textures.u]
geometry = "1d"
data = "s"
filter = "point"
address = ["wrap", "clamp"]
normalized = true
[textures.v]
data = { zeros = { dtype = "f32", shape = [4, 4] } }
filter = "linear"
border = [0, 0, 0, 1]
mip_bias = 0.5
min_level = 0
max_level = 2
[textures.w]
geometry = "2dms"
format = "R8_UNORM"
width = 2
samples = 4
[samplers.x]
filter = "linear"
max_anisotropy = 1
[[launch]]
grid = 1
entry = "by_handle"
block = [4, 1]
args = { s = "s" }
[[launch]]
grid = 1
entry = "by_name"
block = [4, 2]
bind = { named = "s" }
[expect.outputs.s]
expression = "s + (np.arange(64) < 4) * 2"
[save]
s = "s.npy"
picture = "p.png"
""",
    """
ptx = "struct.ptx"
grid = 1
block = 1
[buffers]
x = { zeros = { dtype = "f32", shape = 4 } }
[args]
p = { struct = [{ u32 = 2 }, { struct = [{ f32 = 7.5 }] }, { ptr = "x" }] }
[expect.outputs.x]
expression = "np.float32([0, 0, 7.5, 0])"
""",
    """
ptx = "struct.ptx"
grid = 1
block = 1
[args]
p = { struct = [{ bytes = "00000000" }, { uchar4 = [0, 0, 128, 63] }, { ptr = 0 }] }
""",
)
# Values of each kind, extreme or of another kind than is wanted, and lines.
NUMBERS = [
    "-1",
    "0",
    "2.5",
    "4096",
    "65536",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "0x" + "f" * 5000,
    "9" * 4000,
    "9" * 20,
    "10000000000",
]
TEXTS = ["", "\\u0000", "\\u001b[2J", "../../x.npy", "/etc/passwd", "/dev/zero", ".", "a" * 5000, "4 GiB", "s", "f32", "O", "u8"]
WORDS = ["R8_UINT", "a2d", "cube", "1d", "block_linear", "np.load(1)", "x.T @ x", "x[" * 99, "(" * 9]
OTHERS = ["[]", "{}", "[[[]]]", "true", "1979-05-27", "[1, -1]", "{ zeros = { dtype = 'f32', shape = 1 } }", "'''x'''"]
LINES = ["\n", "=", "a.b.c = 1", "[expect]", "[[launch]]"]
PIECES = (*NUMBERS, *(f'"{text}"' for text in TEXTS + WORDS), *OTHERS, *LINES)
TOKEN = re.compile(r"\"[^\"\n]*\"|[\w.+-]+|\[[^\]\n]*\]|\{[^{}\n]*\}")


def mutated(rng: random.Random) -> str:
    """A case of which some tokens or lines have become others."""
    text = rng.choice(CASES)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = rng.choice(list(TOKEN.finditer(text)))
        kind = rng.random()
        if kind < 0.75:
            text = text[: found.start()] + rng.choice(PIECES) + text[found.end() :]
        elif kind < 0.9:
            lines = text.split("\n")
            lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
            text = "\n".join(lines)
        else:
            text = text[: found.start()] + found[0] * 2 + text[found.end() :]
    return text


def make_inputs(folder: Path) -> None:
    (folder / "saxpy.ptx").write_text(ptx.SAXPY)
    (folder / "surfaces.ptx").write_text(ptx.SURFACES)
    (folder / "struct.ptx").write_text(ptx.STRUCT)
    np.save(folder / "y.npy", np.ones(8, np.float32))
    from PIL import Image

    Image.fromarray(np.zeros((2, 2), np.uint8)).save(folder / "p.png")


def fuzz(seed: int, iterations: int, seconds: float) -> int:
    """Run until one of the limits; how many cases were tried. Raises AssertionError for the first that fails."""
    rng, stop = random.Random(seed), time.monotonic() + seconds
    outer = Path(tempfile.mkdtemp(prefix="ptxemu-fuzz-"))
    folder = outer / "case"
    folder.mkdir()
    make_inputs(folder)
    before = {path.name for path in outer.iterdir()}
    with contextlib.chdir(folder):
        for done in range(iterations):
            if time.monotonic() > stop:
                break
            Path("case.toml").write_text(mutated(rng), encoding="utf-8")
            out, err = io.StringIO(), io.StringIO()
            with time_limit(HANG), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                command = rng.choice((["run", "case.toml", "--output-dir", "out"], ["test", "."]))
                code = run([*command, "--memory", "64 MiB", "--workers", "1", "--timeout", "1"])
            failure = f"iteration {done} of seed {seed}: code {code} in {folder}: {err.getvalue()[:1000]}"
            assert code in CODES and "Traceback" not in err.getvalue() + out.getvalue(), failure
            assert "internal error" not in out.getvalue(), failure
            assert {path.name for path in outer.iterdir()} == before, failure
            assert "\x1b" not in out.getvalue() + err.getvalue(), failure
    shutil.rmtree(outer)
    return done + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    os.environ.setdefault("PTXEMU_CACHE", tempfile.mkdtemp(prefix="ptxemu-fuzz-cache-"))
    limit_memory()
    print(f"{fuzz(options.seed, options.iterations, options.seconds)} cases", file=sys.stderr)


if __name__ == "__main__":
    main()

"""The same programs on ptxemu and on the simulators that Numba and Triton bring: ``python -m tests.clients.simulators``.

The sides take turns; milliseconds of a launch behind the first are minima of the rounds.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.clients.numba_suite import numba_environment
from tests.clients.run_programs import PROGRAMS, TORCH, triton

ROUNDS = 3
SECONDS = 600
SIMULATORS = {"numba": {"NUMBA_ENABLE_CUDASIM": "1"}, "triton": {"TRITON_INTERPRET": "1"}}
"""By which variables each is asked for."""


def once(python: Path, program: Path, environment: dict[str, str]) -> dict[str, float]:
    """What one run says of its kernels, in seconds."""
    done = subprocess.run([python, program], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise SystemExit(f"{program.name}: {done.stderr.strip()}")
    taken: dict[str, float] = json.loads(done.stdout)
    return taken


def main() -> None:
    environments = {"numba": numba_environment(), "triton": triton("torch", TORCH)}
    for name, (python, environment) in environments.items():
        program, plain = PROGRAMS / f"{name}_timings.py", {k: v for k, v in environment.items() if k != "LD_LIBRARY_PATH"}
        rounds = [(once(python, program, environment), once(python, program, plain | SIMULATORS[name])) for _ in range(ROUNDS)]
        for kernel in rounds[0][0]:
            mine, theirs = (min(taken[side][kernel] for taken in rounds) * 1e3 for side in (0, 1))
            print(f"{name}: {kernel}: {mine:.3g} ms, simulated {theirs:.3g} ms, {theirs / mine:.0f} times", flush=True)


if __name__ == "__main__":
    main()

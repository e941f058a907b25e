"""``ptxemu run CASE --dask``: the launches of a case, each over all workers of Dask distributed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from ptxemu.case.runner import CaseRun
from ptxemu.cli.options import DeviceChoice
from ptxemu.cli.suite.cluster import LOCAL, connected
from ptxemu.device.launch import LaunchResult
from ptxemu.spread.merge import merged
from ptxemu.spread.part import Done, Memory, PartRunner
from ptxemu.text.errors import Error

_kept = threading.local()


class PartTime(Struct, frozen=True):
    """Which blocks of a launch a worker has run, in how many seconds in the kernel and in all."""

    launch: int
    first: int
    end: int
    worker: str
    seconds: float
    wall_seconds: float


class Spread:
    """Does launches of a case on the workers of a scheduler's address, or on ``count`` processes of this machine.

    Workers find the case where this process does. ``times`` are those of the parts that have been run.
    """

    def __init__(
        self, path: Path, device: DeviceChoice, scheduler: str, count: int, timeout: float | None, held: ExitStack
    ) -> None:
        self.times: list[PartTime] = []
        self._client = connected(scheduler, count, held)
        self._device = device.share_of(count) if scheduler == LOCAL else device
        self._path, self._timeout = path.absolute(), timeout
        self._name = uuid4().hex

    def launch(self, run: CaseRun, number: int, printf: Callable[[str], None]) -> LaunchResult:
        """Do a launch; its results are then in the memory of ``run``. Raises InputError if it cannot be spread, ConflictError."""
        started = time.perf_counter()
        runner, spec = PartRunner(run), run.case.launches[number]
        shape, memory = runner.checked(spec).shape, runner.memory()
        limit = self._timeout if spec.timeout is None else spec.timeout
        parts = parts_of(shape.blocks, len(self._client.scheduler_info()["workers"]))
        done = self._run_parts(number, memory, parts, limit)
        runner.set_memory(merged(memory, [part.changes for _, part in done], shape.grid, runner.place))
        for part, (worker, result) in zip(parts, done, strict=True):
            printf(result.output)
            self.times.append(PartTime(number, part.start, part.stop, worker, result.seconds, result.wall_seconds))
        return LaunchResult(time.perf_counter() - started, shape.blocks, len(parts), 0)

    def _run_parts(self, number: int, memory: Memory, parts: Sequence[range], limit: float | None) -> list[tuple[str, Done]]:
        client = self._client
        shared = client.scatter(dict(memory), broadcast=True)
        given = self._name, self._path, self._device, number
        futures = [client.submit(run_on_worker, *given, shared, part, limit, pure=False) for part in parts]
        try:
            return [future.result() for future in futures]
        except Error:
            raise
        except Exception as error:
            raise Error(f"a part of launch {number} is lost: {type(error).__name__}: {error}") from None
        finally:
            client.cancel(futures, force=True)


def parts_of(blocks: int, workers: int) -> list[range]:
    """The blocks in as many parts as there are workers, of nearly the same size; none is empty."""
    count = max(1, min(blocks, workers))
    ends = [blocks * number // count for number in range(count + 1)]
    return [range(first, end) for first, end in pairwise(ends)]


def run_on_worker(
    name: str, path: Path, device: DeviceChoice, number: int, memory: Memory, part: range, limit: float | None
) -> tuple[str, Done]:
    """Run a part on a thread of a worker, which keeps program and device for the next one of that name; who has done it."""
    from distributed import get_worker

    if getattr(_kept, "name", None) != name:
        _kept.runner, _kept.name = PartRunner.read(path, device.make()), name
    runner: PartRunner = _kept.runner
    return get_worker().address, runner.run_part(number, memory, part, limit)

"""Cases on the workers of Dask distributed. Where a worker is lost, its cases run again on another one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from ptxemu.cli.suite.one_case import Settings, run_one, share_of
from ptxemu.cli.suite.outcome import KILLED, CaseOutcome
from ptxemu.device.device import Device
from ptxemu.text.errors import InputError

LOCAL = "local"
PATIENCE = 30  # seconds to find a scheduler
_kept = threading.local()


def run_on_dask(paths: Sequence[Path], settings: Settings, scheduler: str, count: int) -> Iterator[CaseOutcome]:
    """The outcomes of cases as they come, from the workers of a scheduler's address, or from ``count`` processes of this machine.

    Workers find the cases where this process does. A case that has cost several workers is *killed*.
    """
    with ExitStack() as held:
        client = connected(scheduler, count, held)
        if scheduler == LOCAL:
            settings = share_of(settings, count)
        elif settings.output is not None:
            settings = replace(settings, output=settings.output.absolute())
        suite = uuid4()
        names = {f"ptxemu-{suite}-{number}": path for number, path in enumerate(paths)}  # of one scheduler for many
        wanted = [path if scheduler == LOCAL else path.absolute() for path in paths]
        futures = client.map(run_on_worker, wanted, [settings] * len(paths), key=list(names), pure=False)
        held.callback(client.cancel, futures, force=True)
        for future in _distributed().as_completed(futures):
            path = names[future.key]
            error = future.exception()
            yield replace(future.result(), path=path) if error is None else _lost(path, error)


def run_on_worker(path: Path, settings: Settings) -> CaseOutcome:
    """Run a case on a thread of a worker, which keeps its device for the next one."""
    if getattr(_kept, "settings", None) != settings:
        _kept.device, _kept.settings = settings.device.make(), settings
    device: Device = _kept.device
    return run_one(path, settings, device)


def connected(scheduler: str, count: int, held: ExitStack) -> Any:
    """A client of a scheduler's address, or of one for ``count`` processes of this machine, until what is held is released."""
    return held.enter_context(_client(_distributed(), scheduler, count, held))


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("--dask needs Dask distributed: pip install 'ptxemu[dask]'") from None
    return distributed


def _client(distributed: Any, scheduler: str, count: int, held: ExitStack) -> Any:
    options = {"n_workers": count, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    try:
        if scheduler == LOCAL:
            return distributed.Client(held.enter_context(distributed.LocalCluster(**options, silence_logs=logging.CRITICAL)))
        return distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {scheduler}: {error}") from None


def _lost(path: Path, error: BaseException) -> CaseOutcome:
    return CaseOutcome(path, str(path), KILLED, f"{type(error).__name__}: {error}", 0.0)

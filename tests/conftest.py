"""What all tests share: a private cache, so that no test sees the user's, interrupts, hypothesis profiles, and whether
the typed IR is checked after every pass."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.support import scheduling, timing
from tests.support.places import ROOT

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of children would each compile all modules anew

settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "fuzz", deadline=None, max_examples=20_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The tests of the IR, a 24th of the others, and with PTXEMU_EVERY_FORM all check it after every pass.

    That takes a sixth of their time.
    """
    drawn = crc32(item.nodeid.encode()) % 24 == 0
    checks = drawn or item.nodeid.startswith("tests/ir/") or "PTXEMU_EVERY_FORM" in os.environ
    os.environ["PTXEMU_VERIFY"] = "1" if checks else "0"


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are CPUs: in a tenth of their time tests wait."""
    cpus = len(os.sched_getaffinity(0))
    return cpus + cpus // 2


def pytest_configure(config: pytest.Config) -> None:
    """Harnesses pass bits of floats as integers; modules that launch kernels as users do make it an error again."""
    config.addinivalue_line("filterwarnings", "ignore::ptxemu.DtypeWarning")
    if config.getoption("--time-tests") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(timing.Timer())


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache directory of this run and its children. Its processes share it: an eighth of their kernels are the same."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PTXEMU_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Shells start background jobs with interrupts ignored; tests of Ctrl-C run in those too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: a third of the time would go into searches for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def is_drawn(item: pytest.Item) -> bool:
    """Whether a test is among those of its kind that run, as the mark ``sampled`` says."""
    mark = item.get_closest_marker("sampled")
    return mark is None or crc32(f"drawn {item.nodeid}".encode()) % mark.args[0] == 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked_for = any("::" in argument for argument in config.args)
    if not asked_for and "PTXEMU_EVERY_FORM" not in os.environ:
        items[:] = filter(is_drawn, items)
    for item in items:
        if timing.function_of(item.nodeid) in timing.slow():
            item.add_marker("slow")
    items.sort(key=lambda item: scheduling.order(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """That of ``tests/support/scheduling.py``, unless the command line asks for one."""
    return scheduling.Neighbours(config, log) if config.getvalue("dist") in ("load", "loadgroup") else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--time-tests", action="store_true", help="write which tests are slow into tests/data/slow_tests.txt")
    parser.addoption("--update-ir", action="store_true", help="write what is printed into the golden files of tests/ir")

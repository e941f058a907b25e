"""bench/run.py: what it times computes what NumPy does, on both sides. bench/ways.py: it measures code for AVX2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile, jit
from tests.support.places import BENCH

KERNELS = sorted(path.stem for path in (BENCH / "kernels").glob("*.ptx"))

MODULES = ("cases", "sides", "run", "ways")


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(BENCH))
    yield {name: import_module(name) for name in MODULES}
    sys.path.remove(str(BENCH))
    for name in MODULES:
        del sys.modules[name]


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device("256 MiB") as device:
        yield device


def test_each_kernel_has_a_case_and_a_twin(bench: dict[str, ModuleType]) -> None:
    assert sorted({bench["cases"].kernel_of(name) for name in bench["cases"].CASES}) == KERNELS
    for kind in ("cu", "c", "cl"):
        assert sorted(path.stem for path in (BENCH / "kernels").glob(f"*.{kind}")) == KERNELS


@pytest.mark.parametrize("kernel", KERNELS)
def test_both_sides_compute_what_numpy_does(
    bench: dict[str, ModuleType], device: ptxemu.Device, kernel: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cases = bench["cases"]
    for name in (name for name in cases.CASES if cases.kernel_of(name) == kernel):
        case = cases.make(name, small=True)
        for side in (bench["sides"].Native(name, case, tmp_path), bench["sides"].Emulated(name, case, device)):
            side.run()
            for index in case.expected:
                case.check(index, side.result(index))
    assert capfd.readouterr() == ("", ""), "the compiler complains"
    assert np.array([1e-310])[0] * np.array([1.0])[0] > 0, "the thread takes subnormals for zeros from now on"


def test_a_wrong_result_is_an_error(bench: dict[str, ModuleType]) -> None:
    case = bench["cases"].make("saxpy", small=True)
    with pytest.raises(AssertionError):
        case.check(3, case.arguments[3])


def test_ratios_are_of_the_least_times(bench: dict[str, ModuleType]) -> None:
    class Side:
        def run(self) -> None: ...

    run = bench["run"]
    costs = run.measure({"C": Side(), "ptxemu": Side()}, 3)
    assert all(0 <= cost.wall < 1 for cost in costs.values())
    row = run.Row("x", {"C": run.Cost(1.0, 2.0), "ptxemu": run.Cost(3.0, 8.0)}, {"other": "does not compile"})
    assert (row.ratio("ptxemu", "wall"), row.ratio("ptxemu", "cpu"), row.ratio("other", "cpu")) == (3.0, 4.0, None)


def test_code_for_avx2_is_other_code(bench: dict[str, ModuleType], device: ptxemu.Device) -> None:
    if not set(bench["ways"].AVX2.split(",")) <= set(jit.host()[2].split(",")):
        pytest.skip("this processor has no AVX2")
    case, before, module = bench["cases"].make("saxpy", small=True), jit.host(), ptxemu.load(BENCH / "kernels" / "saxpy.ptx")
    with bench["ways"].for_avx2():
        side = bench["sides"].Emulated("saxpy", case, device)
        side.run()
        assert "zmm" not in str(compile.emit(module.program.ir, "saxpy", compile.Options(), "asm"))
    assert jit.host() == before
    for index in case.expected:
        case.check(index, side.result(index))

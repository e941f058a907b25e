"""Notebooks: cell magics, and what is shown as a picture."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptxemu
from tests.support import api_kernels as ptx

CUDA = 'extern "C" __global__ void fill(int *y, int value) { y[threadIdx.x] = value; }'


class Shell:
    """What the magics use of IPython's shell."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics: dict[tuple[str, str], Callable[[str, str], object]] = {}

    def register_magic_function(self, function: Callable[[str, str], object], magic_kind: str, magic_name: str) -> None:
        self.magics[magic_kind, magic_name] = function


@pytest.fixture
def shell() -> Shell:
    made = Shell()
    ptxemu.load_ipython_extension(made)
    return made


def test_a_cell_of_ptx_is_a_module(shell: Shell) -> None:
    shown = shell.magics["cell", "ptx"]("hello_module", ptx.HELLO)
    said: list[str] = []
    shell.user_ns["hello_module"]["hello"][1, 1](printf=said.append)
    assert said == ["hello\n"] and shown is shell.user_ns["hello_module"]
    shell.magics["cell", "ptx"]("", ptx.HELLO)
    assert "hello" in shell.user_ns["module"]


def test_after_an_error_the_old_module_is_gone(shell: Shell) -> None:
    shell.magics["cell", "ptx"]("", ptx.HELLO)
    with pytest.raises(ptxemu.PtxError, match=r"cell\.ptx:"):
        shell.magics["cell", "ptx"]("", ptx.HELLO + "\nnonsense")
    assert "module" not in shell.user_ns
    with pytest.raises(ptxemu.InputError, match="name of a variable, not 'two words'"):
        shell.magics["cell", "ptx"]("two words", ptx.HELLO)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_a_cell_of_cuda_is_a_module(shell: Shell) -> None:
    shell.magics["cell", "cuda"]("filler", CUDA)
    y = np.zeros(32, np.int32)
    shell.user_ns["filler"]["fill"][1, 32](y, 7)
    assert (y == 7).all()
    with pytest.raises(ptxemu.InputError, match="nvcc could not compile"):
        shell.magics["cell", "cuda"]("filler", CUDA.replace("value;", "value"))
    assert "filler" not in shell.user_ns


def test_a_cell_of_cuda_needs_nvcc(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ptxemu.InputError, match="no nvcc on PATH"):
        shell.magics["cell", "cuda"]("", CUDA)


def test_a_real_shell_takes_the_extension() -> None:
    shells = pytest.importorskip("IPython.core.interactiveshell")
    shell = shells.InteractiveShell()
    shell.run_line_magic("load_ext", "ptxemu")
    shell.run_cell_magic("ptx", "greetings", ptx.HELLO)
    assert "hello" in shell.user_ns["greetings"]


def pixels(item: Any) -> np.ndarray[Any, Any]:
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(item._repr_png_())))


@pytest.fixture(scope="module")
def device() -> ptxemu.Device:
    return ptxemu.Device(memory="256 MiB")


def test_surfaces_are_pictures(device: ptxemu.Device) -> None:
    data = np.random.default_rng(1).integers(0, 256, (20, 30, 4), dtype=np.uint8)
    assert (pixels(device.surface(data, format="R8G8B8A8_UNORM", layout="block_linear")) == data).all()
    assert (pixels(device.surface(data, format="B8G8R8A8_UNORM")) == data[:, :, [2, 1, 0, 3]]).all()
    assert (pixels(device.surface(data[:, :, 0].copy(), format="R8_UINT")) == data[:, :, 0]).all()
    assert (pixels(device.texture(data)) == data).all()


def test_numbers_are_stretched_and_colours_clipped(device: ptxemu.Device) -> None:
    ramp = np.linspace(-3, 7, 64, dtype=np.float32).reshape(8, 8)
    expected = np.rint((ramp.astype(float) + 3) * 25.5)
    assert (pixels(device.to_device(ramp)) == expected).all()
    holes = ramp.copy()
    holes[0, 1] = np.nan
    holes[3, 3] = np.inf
    shown = pixels(device.to_device(holes))
    assert shown[0, 1] == 0 and shown[3, 3] == 255 and shown[7, 7] == 255
    colours = np.stack([ramp, ramp / 10, 0 * ramp], axis=2)
    assert (pixels(device.to_device(colours)) == np.rint(np.clip(colours.astype(float), 0, 1) * 255)).all()
    assert not pixels(device.empty((8, 8))).any()
    assert (pixels(device.to_device(np.full((4, 4), 0x12FF, np.uint16))) == 0x12).all()


def test_large_pictures_are_thinned(device: ptxemu.Device) -> None:
    assert pixels(device.empty((3000, 5000), "u8")).shape == (1000, 1667)


def test_what_is_no_picture_is_none(device: ptxemu.Device) -> None:
    assert device.empty(100)._repr_png_() is None
    assert device.empty((3, 100))._repr_png_() is None
    assert device.empty((10, 10, 5))._repr_png_() is None
    assert device.surface((4, 8, 8), format="R8_UNORM", geometry="3d")._repr_png_() is None
    freed = device.empty((8, 8))
    freed.free()
    assert freed._repr_png_() is None
    closed = device.surface((8, 8), format="R8_UNORM")
    closed.close()
    assert closed._repr_png_() is None


def test_nobody_takes_device_memory_for_that_of_a_gpu(device: ptxemu.Device) -> None:
    assert not hasattr(device.empty(4), "__cuda_array_interface__")


def test_limits_can_be_read() -> None:
    device = ptxemu.Device(memory="64 MiB", heap="1 MiB", stack="32 KiB", workers=3)
    assert (device.memory, device.heap, device.stack, device.workers) == (64 << 20, 1 << 20, 32 << 10, 3)
    before = device.used
    kept = device.empty(1 << 20, "u8")
    assert device.used >= before + kept.nbytes
    assert ptxemu.Device(memory="64 MiB").heap == 8 << 20

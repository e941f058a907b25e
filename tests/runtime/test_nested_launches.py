"""Kernels that launch kernels (CUDA dynamic parallelism) in Python, on both engines, and by the command line."""

from __future__ import annotations

from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run
from tests.cuda.test_children import APPEND, ARGUMENTS, HEAD, MANY, MOVES, ORDER, REGISTERS, TREE, WRONG, launching

ENDLESS = f"""{HEAD}
.visible .entry spin(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
AGAIN: ld.volatile.global.u32 %i, [%out];
  setp.eq.u32 %p, %i, 0;
  @%p bra AGAIN;
  ret; }}
.visible .entry parent(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  {launching("spin", 1, 1, 0, *ARGUMENTS)}
  ret; }}
"""
# launches itself until n is 0, one after another
CHAIN = f"""{HEAD}
.visible .entry chain(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  atom.global.add.u32 %i, [%out], 1;
  setp.eq.u32 %p, %n, 0;
  @%p bra END;
  sub.u32 %n, %n, 1;
  {launching("chain", 1, 1, 3, *ARGUMENTS)}
END:
  ret; }}
"""


@pytest.fixture(params=["jit", "interpreter"])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device(memory="64 MiB", engine=request.param)


def kernel(text: str, name: str, device: ptxemu.Device) -> Any:
    return ptxemu.loads(text, device=device)[name]


def test_all_is_done_before_the_launch_is_and_tails_come_last(device: ptxemu.Device) -> None:
    out = np.zeros(16, "u4")
    result = kernel(ORDER, "parent", device)[1, 1](out, 0)
    assert out[1 : out[0] + 1].tolist() == [0, 1, 2, 3, 4, 5, 5, 9]
    assert result.ctas == 8


def test_launches_of_launches(device: ptxemu.Device) -> None:
    out = np.zeros(1, "u4")
    for repeat in range(1, 4):
        kernel(TREE, "tree", device)[1, 2](out, 4)
        assert out[0] == repeat * (2**6 - 2)


def test_a_chain_may_be_long(device: ptxemu.Device) -> None:
    out, length = np.zeros(1, "u4"), 1200 if device.engine == "jit" else 40
    kernel(CHAIN, "chain", device)[1, 1](out, length)
    assert out[0] == length + 1


def test_copies_and_sets_of_kernels(device: ptxemu.Device) -> None:
    host = (np.arange(8000) % 251).astype("u1")
    found = host.copy()
    kernel(MOVES, "parent", device)[1, 1](found, 0)
    host[17:5017] = 0xA5
    host[7001:7004] = host[:3]
    np.testing.assert_array_equal(found, host)


def test_memory_comes_back() -> None:
    device = ptxemu.Device(memory="64 MiB", heap="1 MiB")
    out = np.zeros(2, "u4")
    for repeat in range(1, 8):
        kernel(MANY, "parent", device)[4, 256](out, 0)
        assert out.tolist() == [repeat * 4 * 255 * 128, repeat * 1024]


@pytest.mark.parametrize(
    ("name", "said"),
    [("large", r"kernel large has launched large: .*2000"), ("spoiled", "kernel spoiled has launched what is no kernel")],
)
def test_launches_that_cannot_be(device: ptxemu.Device, name: str, said: str) -> None:
    out = np.zeros(1, "u4")
    with pytest.raises(ptxemu.InputError, match=said):
        kernel(WRONG, name, device)[1, 1](out, 1)
    kernel(TREE, "tree", device)[1, 2](out, 1)
    assert out[0] == 6


def test_a_fault_of_what_was_launched_changes_no_array(device: ptxemu.Device) -> None:
    out = np.zeros(1, "u4")
    text = WRONG.replace("mov.u32 %n, 0;", "mov.u32 %n, 0; st.global.u32 [%out], 7;")
    with pytest.raises(ptxemu.Fault, match="`faults`"):
        kernel(text, "faults", device)[1, 1](out, 1)
    assert out[0] == 0


def test_what_a_kernel_launches_and_then_faults_is_dropped(device: ptxemu.Device) -> None:
    out = np.zeros(16, "u4")
    text = f"{HEAD}{APPEND}.visible .entry parent(.param .u64 out, .param .u32 n) {{ {REGISTERS}"
    text += launching("append", 1, 1, 0, *ARGUMENTS) + " mov.u64 %out, 64; st.global.u32 [%out], 1; ret; }"
    buffer = device.to_device(out)
    with pytest.raises(ptxemu.Fault):
        kernel(text, "parent", device)[1, 1](buffer, 1)
    kernel(TREE, "tree", device)[1, 1](np.zeros(1, "u4"), 1)
    assert not buffer.copy_to_host().any()


def test_time_counts_for_all(device: ptxemu.Device) -> None:
    with pytest.raises(ptxemu.LaunchTimeout, match="`spin`"):
        kernel(ENDLESS, "parent", device)[1, 1](np.zeros(1, "u4"), 0, timeout=0.3)


def test_streams_at_once_and_cancelled() -> None:
    device = ptxemu.Device(memory="64 MiB")
    module, out = ptxemu.loads(TREE, device=device), device.to_device(np.zeros(4, "u4"))
    streams = [device.stream() for _ in range(4)]
    pending = [module["tree"][1, 2, stream](out[i : i + 1], 4) for _ in range(5) for i, stream in enumerate(streams)]
    for one in pending:
        one.result()
    assert out.copy_to_host().tolist() == [5 * (2**6 - 2)] * 4
    endless = ptxemu.loads(ENDLESS, device=device)["parent"][1, 1, streams[0]](device.to_device(np.zeros(1, "u4")), 0)
    assert endless.cancel()
    with pytest.raises(CancelledError):
        endless.result()


def test_blocks_cannot_be_done_apart(device: ptxemu.Device) -> None:
    with pytest.raises(ptxemu.InputError, match="it has no parts"):
        kernel(TREE, "tree", device)[4, 1].part(0, 2)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "tree.ptx").write_text(TREE)
    given = ["--grid", "1", "--block", "2", "--arg", "out=zeros:u32:1", "--arg", "n=3"]
    assert run(["run", str(tmp_path / "tree.ptx"), *given, "--out", f"out={tmp_path / 'out.npy'}"]) == 0
    assert np.load(tmp_path / "out.npy")[0] == 30

"""Streams: order, what runs side by side, faults, events, cancellation, and how programs end that do not wait."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import ptxemu
from tests.support import api_kernels as ptx
from tests.support.places import ROOT

STEP = """
.version 7.8
.target sm_70
.address_size 64
// y = 2 y + 1, after some time
.visible .entry step(.param .u64 y)
{
    .reg .b32 %r<4>; .reg .b64 %rd; .reg .pred %p;
    ld.param.u64 %rd, [y];
    mov.u32 %r2, 0;
WAIT:
    add.u32 %r2, %r2, 1;
    nanosleep.u32 20000;
    setp.lt.u32 %p, %r2, 20;
    @%p bra WAIT;
    ld.global.u32 %r1, [%rd];
    mad.lo.u32 %r1, %r1, 2, 1;
    st.global.u32 [%rd], %r1;
    ret;
}
// waits until *flag is set
.visible .entry await_flag(.param .u64 flag)
{
    .reg .b32 %r; .reg .b64 %rd; .reg .pred %p;
    ld.param.u64 %rd, [flag];
AGAIN:
    ld.volatile.global.u32 %r, [%rd];
    setp.eq.u32 %p, %r, 0;
    @%p bra AGAIN;
    ret;
}
.visible .entry set_flag(.param .u64 flag)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [flag];
    st.volatile.global.u32 [%rd], 1;
    ret;
}
.visible .entry wild()
{
    .reg .b64 %rd;
    mov.u64 %rd, 64;
    st.global.u32 [%rd], 1;
    ret;
}
"""


@pytest.fixture(params=["jit", "interpreter"])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device(memory="64 MiB", workers=2, engine=request.param)


@pytest.fixture
def module(device: ptxemu.Device) -> ptxemu.Module:
    return ptxemu.loads(STEP, device=device)


def test_the_order_within_a_stream_holds(device, module):
    stream, y = device.stream(), np.zeros(1, np.uint32)
    done = [module["step"][1, 1, stream](y) for _ in range(10)]
    assert not done[-1].done
    stream.synchronize()
    assert y[0] == 2**10 - 1 and stream.idle
    assert all(one.done and one.result().ctas == 1 for one in done)


def test_arrays_that_are_not_contiguous_are_read_in_the_order_of_the_stream(device, module):
    stream, y = device.stream(), np.zeros(8, np.uint32)
    for _ in range(3):
        module["step"][1, 1, stream](y[::4])
    stream.synchronize()
    assert y.tolist() == [7, 0, 0, 0, 0, 0, 0, 0]


def test_buffers_live_until_the_launch_has_ended(device, module):
    stream = device.stream()
    flag, y = device.empty(1, "u32"), device.empty(1, "u32")
    module["await_flag"][1, 1, stream](flag)
    pending = module["step"][1, 1, stream](y)
    array = y.array
    del y
    flag.array[0] = 1
    pending.result()
    assert array[0] == 1


def test_streams_run_side_by_side(device, module):
    first, second, flag = device.stream(), device.stream(), device.empty(1, "u32")
    waiting = module["await_flag"][1, 1, first](flag, timeout=60)
    module["set_flag"][1, 1, second](flag)
    waiting.result()
    device.synchronize()


def test_a_launch_without_a_stream_does_not_wait_for_streams(device, module):
    stream, flag = device.stream(), device.empty(1, "u32")
    waiting = module["await_flag"][1, 1, stream](flag, timeout=60)
    module["set_flag"][1, 1](flag)
    waiting.result()


def test_events_have_times_and_order_streams(device, module):
    first, second, y = device.stream(), device.stream(), device.empty(1, "u32")
    before = first.record()
    first.call(time.sleep, 0.02)
    module["step"][1, 1, first](y)
    after = first.record()
    second.wait(after)
    seen = second.call(lambda: int(y.array[0]))
    assert seen.result() == 1
    assert after.done and 0.02 <= after.seconds_since(before) < 60
    assert abs(after.time - time.monotonic()) < 60


def test_faults_are_raised_at_the_synchronisation_once(device, module):
    stream, y = device.stream(), np.zeros(1, np.uint32)
    wild = module["wild"][1, 1, stream]()
    behind = module["step"][1, 1, stream](y)
    with pytest.raises(ptxemu.Fault, match="null pointer"):
        stream.synchronize()
    with pytest.raises(ptxemu.Error, match="launch of `step` was not done, as work before it"):
        behind.result()
    with pytest.raises(ptxemu.Fault):
        wild.result()
    assert y[0] == 0
    stream.synchronize()
    module["step"][1, 1, stream](y)
    stream.synchronize()
    assert y[0] == 1


def test_work_is_not_done_until_the_program_knows_of_the_fault(device, module):
    stream, y = device.stream(), np.zeros(1, np.uint32)
    wild = module["wild"][1, 1, stream]()
    while not wild.done:
        time.sleep(0.001)
    later = module["step"][1, 1, stream](y)
    while not later.done:
        time.sleep(0.001)
    with pytest.raises(ptxemu.Fault):
        wild.result()
    module["step"][1, 1, stream](y).result()
    stream.synchronize()
    assert y[0] == 1


def test_other_streams_go_on_after_a_fault(device, module):
    first, second, y = device.stream(), device.stream(), np.zeros(1, np.uint32)
    module["wild"][1, 1, first]()
    module["step"][1, 1, second](y)
    second.synchronize()
    assert y[0] == 1
    with pytest.raises(ptxemu.Fault):
        device.synchronize()


def test_time_limits_are_of_the_launch(device):
    stream = device.stream()
    ptxemu.loads(ptx.ENDLESS, device=device)["endless"][1, 32, stream](timeout=0.05)
    with pytest.raises(ptxemu.LaunchTimeout):
        stream.synchronize()


def test_wrong_arguments_are_errors_of_the_call(device, module):
    stream = device.stream()
    with pytest.raises(ptxemu.InputError, match="takes 1 arguments"):
        module["step"][1, 1, stream]()
    with pytest.raises(ptxemu.InputError, match="another device"):
        module["step"][1, 1, ptxemu.Device(memory="8 MiB").stream()](None)
    with pytest.raises(ptxemu.InputError, match="is a stream, not 5"):
        module["step"][1, 1, 5]
    with pytest.raises(ptxemu.InputError, match="waits for an event"):
        stream.wait(None)
    with pytest.raises(ptxemu.InputError, match="calls functions"):
        stream.call(None)
    assert stream.idle


def test_a_cancelled_launch_stops(device):
    endless, stream, y = ptxemu.loads(ptx.ENDLESS, device=device)["endless"], device.stream(), []
    running = endless[4, 32, stream]()
    waiting = endless[4, 32, stream]()
    last = stream.call(y.append, 1)
    assert waiting.cancel()
    time.sleep(0.1)
    assert running.cancel()
    stream.synchronize()
    for one in (running, waiting):
        with pytest.raises(CancelledError):
            one.result()
        assert not one.cancel() or one.done
    assert last.done and y == [1]


def test_a_cancelled_launch_copies_nothing_back(device):
    text = STEP.replace("ld.volatile.global.u32 %r, [%rd];", "st.global.u32 [%rd+4], 9; ld.volatile.global.u32 %r, [%rd];")
    stream, flag = device.stream(), np.zeros(2, np.uint32)
    running = ptxemu.loads(text, device=device)["await_flag"][1, 1, stream](flag)
    time.sleep(0.1)
    running.cancel()
    stream.synchronize()
    assert flag.tolist() == [0, 0]


def test_a_stream_can_be_cancelled_as_a_whole(device):
    endless, stream = ptxemu.loads(ptx.ENDLESS, device=device)["endless"], device.stream()
    all_of_it = [endless[4, 32, stream]() for _ in range(5)]
    with pytest.raises(TimeoutError):
        stream.synchronize(0.05)
    stream.cancel()
    stream.synchronize()
    assert all(one.done for one in all_of_it)


def test_launches_can_be_awaited(device, module):
    async def program() -> list[int]:
        streams = [device.stream() for _ in range(3)]
        arrays = [np.full(1, i, np.uint32) for i in range(3)]
        results = await asyncio.gather(*(module["step"][1, 1, s](y) for s, y in zip(streams, arrays)))
        assert [one.ctas for one in results] == [1, 1, 1]
        with pytest.raises(ptxemu.Fault):
            await module["wild"][1, 1, streams[0]]()
        await streams[0].record()
        return [int(y[0]) for y in arrays]

    assert asyncio.run(program()) == [1, 3, 5]


def test_a_cancelled_task_stops_its_launch(device):
    endless, stream = ptxemu.loads(ptx.ENDLESS, device=device)["endless"], device.stream()

    async def program() -> None:
        async with asyncio.timeout(0.1):
            await endless[4, 32, stream]()

    with pytest.raises(TimeoutError):
        asyncio.run(program())
    stream.synchronize()


def test_closing_a_device_stops_its_streams(device):
    stream = device.stream()
    running = ptxemu.loads(ptx.ENDLESS, device=device)["endless"][4, 32, stream]()
    device.close()
    with pytest.raises(CancelledError):
        running.result()


def test_streams_may_be_used_by_many_threads(module, device):
    stream, y = device.stream(), device.empty(1, "u32")

    def work() -> None:
        for _ in range(5):
            stream.call(y.array.__iadd__, np.uint32(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.synchronize()
    assert y.array[0] == 20


def run(program: str) -> subprocess.CompletedProcess[str]:
    head = "import os, signal, sys, threading, time\nfrom tests.support import api_kernels as ptx\nimport ptxemu\n"
    head += "device = ptxemu.Device(memory='16 MiB', workers=2)\nstream = device.stream()\n"
    head += "endless = ptxemu.loads(ptx.ENDLESS, device=device)['endless']\n"
    return subprocess.run([sys.executable, "-c", head + program], capture_output=True, text=True, cwd=ROOT, timeout=120)


def test_programs_end_with_work_that_waits():
    done = run("for _ in range(3): endless[4, 32, stream]()\nprint('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_failure_that_nobody_asked_for_is_told_at_the_end():
    done = run("stream.call(lambda: 1 / 0)\nwhile not stream.idle: pass")
    assert done.returncode == 0 and "a stream has failed, and nobody has asked: division by zero" in done.stderr


@pytest.mark.parametrize("wait", ["stream.synchronize()", "last.result()"])
def test_interrupts_stop_what_is_waited_for(wait):
    done = run(
        "for _ in range(3): last = endless[4, 32, stream]()\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        f"    {wait}\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_a_forked_child_has_streams_of_its_own():
    done = run(
        "pending = endless[4, 32, stream]()\ntime.sleep(0.1)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    try: pending.result()\n"
        "    except ptxemu.Error as error: print(error)\n"
        "    print(stream.idle, stream.call(lambda: 5).result())\n"
        "    sys.exit()\n"
        "print(os.waitpid(child, 0)[1], pending.done)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "launch of `endless`: the process was forked meanwhile: the work goes on in the parent alone\nTrue 5\n0 False\n"
    )

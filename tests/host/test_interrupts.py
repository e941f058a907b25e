"""Interrupts that come again and again while a launch runs or ends: it is always stopped before anything it uses goes away."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import ptxemu
from tests.support import api_kernels as ptx
from tests.support.places import ROOT

# Everything that the launch works on goes away right after each interrupted launch: threads that were still in it would crash.
STORM = """
import gc, signal, sys, time
from tests.support import api_kernels as ptx
import ptxemu

left = raised = 0
armed = False

class Ring(Exception):
    pass

def beat(number, frame):
    global left, raised
    left -= 1
    if left <= 0:
        signal.setitimer(signal.ITIMER_REAL, 0)
    while armed and frame is not None:  # only below the launch, so that this loop survives
        if frame.f_code.co_filename.endswith(PLACES):
            raised += 1
            raise KINDS[raised % 2]
        frame = frame.f_back

KINDS = (KeyboardInterrupt, Ring)
PLACES = ("ptxemu/device/launch.py", "ptxemu/device/arena.py") if sys.argv[1] == "launch" else ("ptxemu/device/launch.py",)
signal.signal(signal.SIGALRM, beat)
for i in range(int(sys.argv[2])):
    device = ptxemu.Device(memory="16 MiB", workers=2)
    module = ptxemu.loads(ptx.ENDLESS, device=device)
    left = 2 + i % 9
    signal.setitimer(signal.ITIMER_REAL, 0.003 + i % 7 * 0.0007, 0.00005 + i % 5 * 0.0002)
    armed = True
    try:
        module["endless"][8, 256](timeout=0.5)
    except (*KINDS, ptxemu.LaunchTimeout):
        armed = False
        if i % 3 == 0:
            device.close()  # while the exception still refers to the frames of the launch
    armed = False
    while left > 0:
        time.sleep(0.0005)
    del module
    device.close()
    gc.collect()
print("raised" if raised > 10 else "no interrupt came")
"""


@pytest.mark.parametrize("place", ["launch", "wait"])
def test_a_storm_of_signals(place):
    command = [sys.executable, "-c", STORM, place, "25"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr


def test_output_that_raises_stops_the_launch():
    class Stop(BaseException):
        pass

    def printf(text: str) -> None:
        raise Stop

    device = ptxemu.Device(memory="16 MiB", workers=2)
    module = ptxemu.loads(ptx.HELLO.replace("  ret;", "AGAIN:\n  bra AGAIN;"), device=device)
    with pytest.raises(Stop):
        module["hello"][4, 32](printf=printf)
    device.close()


def test_a_closed_device_keeps_the_memory_of_views():
    device = ptxemu.Device(memory="16 MiB")
    array = device.to_device(np.arange(1000)).array
    device.close()
    device.close()
    np.testing.assert_array_equal(array, np.arange(1000))
    with pytest.raises(ptxemu.InputError, match="the device is closed"):
        device.empty(1)

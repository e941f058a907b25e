"""A forked child can do everything, whatever the threads of its parent were doing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PARENT = """
import os, threading
import numpy as np
import api_kernels as ptx
import ptxemu
from ptxemu.device import device as devices

device = ptxemu.default_device()
module = ptxemu.loads(ptx.HELLO)
module["hello"][1, 1](printf=lambda text: None)
locks = [devices._default_lock, device.arena._lock, device.surface_table._lock, device.texture_table._lock, module._lock]
held, done = threading.Event(), threading.Event()

def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    done.wait()
    for lock in reversed(locks):
        lock.release()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if not child:
    code = 1
    try:
        assert ptxemu.default_device() is device
        assert device.to_device(np.arange(5)).array[4] == 4
        device.surface((4, 4), format="R8_UINT"), device.texture(np.zeros((4, 4), "u1"))
        said = []
        module["hello"][1, 1](printf=said.append)
        code = 0 if said == ["hello\\n"] else 2
    finally:
        os._exit(code)
status = os.waitpid(child, 0)[1]
done.set()
thread.join()
device.to_device(np.arange(5))
print(os.waitstatus_to_exitcode(status))
"""


def test_a_child_finds_all_locks_free():
    command = [sys.executable, "-W", "ignore", "-c", PARENT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parent)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr

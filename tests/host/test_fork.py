"""A forked child can do everything, whatever the threads of its parent were doing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.places import ROOT

PARENT = """
import os, threading
import numpy as np
from tests.support import api_kernels as ptx
import ptxemu
from ptxemu.device import device as devices

device = ptxemu.default_device()
module = ptxemu.loads(ptx.HELLO)
module["hello"][1, 1](printf=lambda text: None)
locks = [devices._default_lock, device.surface_table._lock, device.texture_table._lock, module._lock]
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

# The child comes back into the middle of a launch, whose threads and memory are its parent's.
WITHIN_A_LAUNCH = """
import os
from tests.support import api_kernels as ptx
import ptxemu

device = ptxemu.Device(memory="16 MiB", workers=2)
module = ptxemu.loads(ptx.HELLO.replace("  ret;", "AGAIN:\\n  bra AGAIN;"), device=device)
hello = ptxemu.loads(ptx.HELLO, device=device)["hello"][1, 1]
children = []

def printf(text):
    children or children.append(os.fork())

try:
    module["hello"][1, 1](printf=printf, timeout=1)
except ptxemu.Error as error:
    if not children[0]:
        said = []
        hello(printf=said.append)
        over = "the process was forked while `hello` ran: the launch goes on in the parent alone"
        os._exit([str(error), said] != [over, ["hello\\n"]])
    assert isinstance(error, ptxemu.LaunchTimeout)
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""

# Another thread's launch has all of the memory of the device.
BESIDE_A_LAUNCH = """
import os, threading
from tests.support import api_kernels as ptx
import ptxemu

LOCAL = ".visible .entry endless() { .local .b8 big[65536]; .reg .b64 %d; mov.u64 %d, big; st.local.u32 [%d], 1; L: bra L; }"
device = ptxemu.Device(memory="4 MiB", workers=1)
module = ptxemu.loads(ptx.HEAD + LOCAL, device=device)
running = threading.Thread(target=lambda: module["endless"][1, 32](timeout=3), daemon=True)
threading.excepthook = lambda arguments: None
running.start()
while device.arena.used < 2 << 20:
    pass
child = os.fork()
if not child:
    used = device.arena.used
    try:
        module["endless"][1, 32](timeout=0.1)
    except ptxemu.LaunchTimeout:
        os._exit(used != 0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
running.join()
"""

# The compiler's thread is the parent's.
WITHIN_A_CALL = """
import os, signal, time
from ptxemu.process.interruptible import interruptible

children = []
signal.signal(signal.SIGALRM, lambda *arguments: children.append(os.fork()))
signal.setitimer(signal.ITIMER_REAL, 0.3)
made = interruptible(lambda: time.sleep(1) or os.getpid())
if not children[0]:
    os._exit(made != os.getpid())
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.parametrize("program", [PARENT, WITHIN_A_LAUNCH, BESIDE_A_LAUNCH, WITHIN_A_CALL])
def test_a_child_goes_on(program):
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["0"]), done.stderr


WHILE_A_THREAD_IMPORTS = """
import importlib, os, signal, sys, threading
import ptxemu

begun = threading.Event()
sys.begun = begun
thread = threading.Thread(target=importlib.import_module, args=["slow"])
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    import slow
    os._exit(slow.VALUE)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


def test_a_child_can_import_what_a_thread_was_importing(tmp_path):
    """Without our lock: libraries import when they like."""
    (tmp_path / "slow.py").write_text("import sys, time\nsys.begun.set()\ntime.sleep(0.5)\nVALUE = 7\n")
    done = subprocess.run(
        [sys.executable, "-c", WHILE_A_THREAD_IMPORTS], capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False
    )
    assert (done.stdout, done.stderr) == ("7\n", "")

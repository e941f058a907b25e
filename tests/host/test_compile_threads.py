"""Compilations in threads, in forked children, and under Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxemu.driver import compile
from ptxemu.process.interruptible import interruptible

TIMEOUT = 300  # only a hang takes longer


def text_of(number: int, lines: int = 20) -> str:
    body = "".join(f"mad.lo.u32 %r1, %r1, {number}, {index}; xor.b32 %r1, %r1, %r0;\n" for index in range(lines))
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {{
    .reg .b32 %r<2>; .reg .b64 %d<3>;
    ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; ld.global.u32 %r1, [%d1];
    {body} st.global.u32 [%d1], %r1; ret;
}}
"""


def code_of(number: int) -> bytes:
    return compile.kernel(compile.front(text_of(number)), "k", compile.Options()).object


def python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PTXEMU_CACHE": "off"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment, check=False, **options)


def test_threads_make_the_code_that_one_makes():
    numbers = list(range(8)) * 2
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(code_of, numbers))
    assert made == [code_of(number) for number in numbers]


def test_two_compilations_are_in_llvm_at_once(monkeypatch):
    """Each waits in the middle for the other."""
    both = threading.Barrier(2, timeout=TIMEOUT)
    run_passes = compile.jit.run_passes

    def meet(*arguments: object) -> None:
        both.wait()
        run_passes(*arguments)

    monkeypatch.setattr(compile.jit, "run_passes", meet)
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(code_of, (1, 2)))


FORKS = """
import os, sys, threading
import numpy as np
import ptxemu
text = sys.stdin.read()
stop = threading.Event()

def compile_on(thread):
    number = 0
    while not stop.is_set():
        number += 1
        ptxemu.loads(f"{text}// {thread} {number}").program.load("k", (32, 1, 1))

def launch(text):
    values = np.arange(32, dtype=np.uint32)
    ptxemu.loads(text)["k"][1, 32](values)
    return values

threads = [threading.Thread(target=compile_on, args=[number]) for number in range(3)]
for thread in threads:
    thread.start()
codes = []
for child in range(7):
    pid = os.fork()
    if not pid:
        try:
            first = launch(f"{text}// child {child}")
            os._exit(0 if (first == launch(text)).all() else 1)
        finally:
            os._exit(2)
    codes.append(os.waitpid(pid, 0)[1])
stop.set()
for thread in threads:
    thread.join()
print(set(codes))
"""


def test_forked_children_compile_while_threads_do():
    done = python(FORKS, input=text_of(3))
    assert (done.stdout, done.stderr) == ("{0}\n", "")


MEMORY = """
import resource, sys
from ptxemu.driver import compile
module = compile.front(sys.stdin.read())

def peak(count):
    for _ in range(count):
        compile.kernel(module, "k", compile.Options())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = peak(5)
print((peak(40) - before) // 1024)
"""


def test_the_memory_of_a_compilation_is_given_back():
    done = python(MEMORY, input=text_of(1, 150))
    assert int(done.stdout) < 16, "MiB of 40 compilations"


INTERRUPTED = """
import ctypes, sys
from ptxemu.driver import jit; from ptxemu import cli

def endless(*arguments):
    print("compiling", flush=True)
    while True:
        ctypes.CDLL(None).sleep(3600)

jit._translate = endless
cli.main(["compile", sys.argv[1]])
"""


def test_an_interrupt_does_not_wait_for_llvm(tmp_path: Path):
    path = tmp_path / "k.ptx"
    path.write_text(text_of(1))
    command = [sys.executable, "-c", INTERRUPTED, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "compiling\n"
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=TIMEOUT)
            assert (output, errors.strip()) == ("", "interrupted")
            assert process.returncode == 130
        finally:
            process.kill()


def test_interruptible_returns_and_raises():
    assert interruptible(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_without_threads_it_runs_here(monkeypatch):
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert interruptible(lambda: 3) == 3

"""The compile server, seen by a program: answers, errors, wrong messages, deaths, deadlines."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ptxemu._runtime import lib
from ptxemu.cache import Cache
from ptxemu.driver.program import Program, Settings
from ptxemu.serve.__main__ import NEEDED
from ptxemu.serve.protocol import HEAD, LENGTH, MAGIC, Channel
from ptxemu.text.source import SourceFile
from tests.support.block_shapes import BLOCKS
from tests.support.places import FATBIN, ROOT

ADD = (FATBIN / "add_lz4.fatbin").read_bytes()
KEY = b"0123456789abcdef" * 4
LONG = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .u32 %r<2>;\n" + b"%s ret;\n}\n" % (
    b"add.u32 %r1, %r1, 1;\n" * 100_000
)


class Connection:
    """A server and our end of its socket."""

    def __init__(self, **environment: str) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-m", "ptxemu.serve", str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env={**os.environ, **environment})
        theirs.close()
        ours.settimeout(120)
        self.socket = ours
        self.channel = Channel(ours)
        assert self.channel.receive() == [b"ptxemu"]

    def ask(self, *fields: bytes) -> list[bytes]:
        self.channel.send(fields)
        answer = self.channel.receive()
        assert answer is not None
        return answer

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(number) for number in listed.split()]

    def close(self) -> int:
        self.socket.close()
        return self.process.wait(60)


@contextmanager
def server(**environment: str) -> Iterator[Connection]:
    connection = Connection(**environment)
    try:
        yield connection
    finally:
        connection.socket.close()
        connection.process.kill()
        connection.process.wait()


def test_code_is_where_the_program_looks_for_it(tmp_path):
    with server(PTXEMU_CACHE=str(tmp_path / "c")) as server_:
        status, identity = server_.ask(b"load", b"80", ADD, KEY)
        assert status == b"ok"
        assert server_.ask(b"code", b"80", ADD, KEY, b"add", b"256,1,1") == [b"ok", identity]
        assert server_.ask(b"code", b"80", ADD, KEY, b"add", b"3,3,3") == [b"ok", identity]
        cache = Cache(tmp_path / "c")
        text = (FATBIN / "add_plain.fatbin").read_bytes()
        from ptxemu.images.fatbin import text_of

        program = Program(SourceFile("<module>", text_of(text, 80)), Settings(), cache)
        assert program.identity.encode() == identity
        alias = cache.get(KEY.decode(), lib.PE_ENTRY_BYTES)
        assert alias is not None and alias.bytes == identity
        assert program.is_cached("add", (64, 1, 1))
        assert program.is_cached("add", (3, 3, 3))
        assert not program.is_cached("add", (2, 2, 1))
        assert server_.close() == 0


def test_whose_bits_a_program_gets(tmp_path):
    """Each has code of its own; the names of the library's are those of Python's."""
    identities = set()
    for like in ("", "exact", "sm_86"):
        with server(PTXEMU_CACHE=str(tmp_path), PTXEMU_LIKE=like) as server_:
            identities.add(server_.ask(b"load", b"80", ADD, KEY)[1])
    assert len(identities) == 3
    with server(PTXEMU_LIKE="turing") as server_:
        status, text = server_.ask(b"load", b"80", ADD, KEY)
        assert (status, b"like must be an architecture such as sm_89 or exact, not 'turing'" in text) == (b"invalid", True)


def test_errors_are_answers():
    with server() as server_:
        status, text = server_.ask(b"load", b"80", b".version 8.0\n.target sm_80\n.entry k() { frob; }", KEY)
        assert (status, b"error: unknown instruction 'frob'" in text) == (b"invalid", True)
        status, text = server_.ask(b"load", b"80", ADD[:100], KEY)
        assert (status, b"damaged" in text) == (b"invalid", True)
        status, text = server_.ask(b"load", b"70", ADD, KEY)
        assert (status, b"compute_75, compute_90 only" in text) == (b"unsupported", True)
        assert server_.ask(b"code", b"80", ADD, KEY, b"sub", b"1,1,1") == [b"invalid", b"the module has no kernel 'sub'"]
        assert server_.ask(b"load", b"80", ADD, KEY)[0] == b"ok"  # and it goes on


ALONE = f"""
import signal, socket
from pathlib import Path
from tempfile import mkdtemp
from ptxemu.cache import Cache
from ptxemu.driver import lowering
from ptxemu.driver.program import Program
from ptxemu.serve import child
from ptxemu.serve.protocol import Channel
from ptxemu.serve.worker import Wanted, Worker
from tests.support.block_shapes import BLOCKS

signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the server

def answer_to(wanted):
    ours, theirs = map(Channel, socket.socketpair())
    with ours.socket, theirs.socket:
        worker = Worker(theirs, {ADD!r}, 80, "{KEY.decode()}", Cache(Path(mkdtemp(dir="."))))
        assert worker.code(wanted) is None
        for running in list(worker.running.values()):
            worker._finish(*running)
        return ours.receive(), list(worker.queue)
"""


def worker_alone(code: str, folder: Path, quiet: bool = True) -> str:
    """What a worker's methods do, in a process as small as the server: what it forks is bounded as those children are."""
    command = [sys.executable, "-c", ALONE + code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, env=environment, check=False)
    assert not quiet or done.stderr == ""
    return done.stdout


def test_what_nobody_expected_is_said_in_one_line(tmp_path):
    """Where it happens: in the process that compiles a kernel."""
    code = r"""
def broken(*_):
    raise RuntimeError("no such thing\x1b[2J\nand more of it")

Program.code = broken
print(answer_to(Wanted("add", (32, 1, 1)))[0])
"""
    said = "internal error: RuntimeError: no such thing\N{REPLACEMENT CHARACTER}[2J"
    assert worker_alone(code, tmp_path) == f"{[b'failed', said.encode()]}\n"


def test_a_compiler_without_memory_answers(tmp_path):
    """By itself, or ended by LLVM, which says why: whoever asks first for what is not there."""
    code = """
child.MEMORY_BYTES = 1 << 20
status, text = answer_to(Wanted("add", (32, 1, 1)))[0]
print(status, text in (b"the compiler ran out of memory", b"the process that compiled kernel 'add' was ended by SIGABRT"))
"""
    assert worker_alone(code, tmp_path, quiet=False) == "b'failed' True\n"


def test_better_code_follows_for_the_same_block(tmp_path):
    code = """
lowering.FIRST_LAUNCH = 0  # every kernel counts as large
for block in BLOCKS:
    answer, queue = answer_to(Wanted("add", block))
    print(answer[0], queue == [Wanted("add", block, best=True)])
"""
    assert worker_alone(code, tmp_path) == "b'ok' True\n" * len(BLOCKS)


def test_what_is_needed_is_what_is_imported():
    """A Python that lacks some of it would greet, and then die."""
    code = (
        "import sys; from ptxemu.serve import server, warm, worker; warm.warm();"
        "worker.texts_of(sys.stdin.buffer.read(), 80);"
        "print(*{name.partition('.')[0] for name, module in sys.modules.items() if 'site-packages' in str(module)})"
    )
    image = (FATBIN / "add_zstd.fatbin").read_bytes()
    done = subprocess.run([sys.executable, "-I", "-c", code], input=image, capture_output=True, check=True)
    found = {name for name in done.stdout.decode().split() if not name.startswith(("__editable__", "ptxemu"))}
    assert found - {"_distutils_hack", "typing_extensions"} == set(NEEDED)  # these come with others


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [b""],
        [b"load"],
        [b"load", b"80", b""],
        [b"load", b"-1", b"", KEY],
        [b"load", b"\xb2", b"", KEY],
        [b"load", b"80", b"", b"../../../../etc/passwd"],
        [b"load", b"80", b"", KEY + b"0"],
        [b"what", b"80", b"", KEY],
        [b"load", b"80", b"", KEY, b""],
        [b"code", b"80", b"", KEY, b"k", b"0,1,1"],
        [b"code", b"80", b"", KEY, b"k", b"1,1"],
        [b"code", b"80", b"", KEY, b"k", b"1,1,99999999999999999999"],
    ],
)
def test_a_wrong_request_is_refused(fields, shared_server):
    assert shared_server.ask(*fields)[0] == b"invalid"


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Connection]:
    with server() as server_:
        yield server_


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\0" * 64,
        MAGIC,
        HEAD.pack(MAGIC, 17),
        HEAD.pack(MAGIC, 1) + LENGTH.pack(1 << 63),
        HEAD.pack(MAGIC, 2) + LENGTH.pack(1 << 30) + b"x",
        HEAD.pack(MAGIC, 2) + LENGTH.pack(3) + b"abc" + LENGTH.pack((1 << 30) - 2),
        HEAD.pack(MAGIC, 3) + struct.pack("<Q", 4) + b"lo",
    ],
)
def test_bytes_that_are_no_message_end_the_server(data):
    with server() as server_:
        server_.socket.sendall(data)
        server_.socket.shutdown(socket.SHUT_WR)
        assert server_.process.wait(60) == 0


def test_a_dead_worker_is_an_answer_and_the_next_request_starts_another():
    with server() as server_:
        assert server_.ask(b"load", b"80", ADD, KEY)[0] == b"ok"
        (worker,) = server_.children()
        os.kill(worker, signal.SIGKILL)
        status, text = server_.ask(b"code", b"80", ADD, KEY, b"add", b"1,1,1")
        assert (status, text) == (b"failed", b"the compiler of the module was ended by SIGKILL")
        assert server_.ask(b"code", b"80", ADD, KEY, b"add", b"1,1,1")[0] == b"ok"


def test_the_deadline_is_an_answer():
    with server(PTXEMU_COMPILE_TIMEOUT="0.001", PTXEMU_CACHE="off") as server_:
        status, text = server_.ask(b"load", b"80", LONG, KEY)
        assert (status, b"more than 0.001 s (PTXEMU_COMPILE_TIMEOUT sets the limit)" in text) == (b"failed", True)
        assert not server_.children()


def test_the_server_ends_with_its_program_though_it_compiles():
    with server(PTXEMU_CACHE="off") as server_:
        server_.channel.send([b"load", b"80", LONG, KEY])
        assert server_.close() == 0


def test_few_workers_are_kept():
    with server() as server_:
        for number in range(12):
            text = f".version 8.0\n.target sm_80\n.address_size 64\n.entry k{number}() {{ ret; }}\n".encode()
            assert server_.ask(b"load", b"80", text, KEY)[0] == b"ok"
        assert len(server_.children()) == 8


@pytest.mark.parametrize("arguments", [[], ["x"], ["99"], ["0", "1"]])
def test_wrong_arguments_are_said(arguments):
    done = subprocess.run([sys.executable, "-m", "ptxemu.serve", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "ptxemu.serve" in done.stderr

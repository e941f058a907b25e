"""``ptxemu`` without its start-up: a server that has everything imported forks for each command.

``WarmCommands(folder)`` writes programs into the folder: ``ptxemu``, and ``python-session``, which executes what it reads. They
hand arguments, environment and standard streams to the server, and end as the command did.
``python -m tests.support.warm_commands SOCKET`` is the server.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from types import TracebackType

import click

from tests.support.places import ROOT

END = "\x04"  # begins the line with which a session answers: an error, or an empty text
CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"!"], [0, 1, 2])
server.sendall(json.dumps([{command!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
code = server.makefile().read()
sys.exit(int(code) if code else 70)
"""


class WarmCommands:
    """A context in which the server runs and ``folder`` has the programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._address = str(folder / "server")

    def __enter__(self) -> WarmCommands:
        command = [sys.executable, "-m", "tests.support.warm_commands", self._address]
        self._server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._server.stdout is not None and self._server.stdout.readline() == b"ready\n"
        for name in ("ptxemu", "python-session"):
            program = self.folder / name
            program.write_text(CLIENT.format(python=sys.executable, address=self._address, command=name))
            program.chmod(0o755)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._server.terminate()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()


def serve(address: str) -> None:
    from ptxemu.cli import cli

    context = click.Context(cli)
    for name in cli.list_commands(context):
        cli.get_command(context, name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print("ready", flush=True)
        while True:
            client, _ = listener.accept()
            if not os.fork():
                listener.close()
                _answer(client)
            client.close()


def _answer(client: socket.socket) -> None:
    """Runs one command in a child, as that may end in any way, and tells its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(client, 1, 3)
    command, arguments, folder, environment = json.loads(client.makefile().readline())
    if not (child := os.fork()):
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        _run(command, arguments)
    for stream in streams:
        os.close(stream)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    client.sendall(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def _run(command: str, arguments: list[str]) -> None:
    if command == "ptxemu":
        from ptxemu.cli import main

        main(arguments)
    names: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        problem = ""
        try:
            exec(compile(*json.loads(line), "exec"), names)
        except Exception:
            problem = traceback.format_exc()
        print(END + json.dumps(problem), flush=True)
    sys.exit()


if __name__ == "__main__":
    serve(sys.argv[1])

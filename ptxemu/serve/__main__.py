"""``python -m ptxemu.serve FD``: serve the program at the other end of an inherited socket."""

from __future__ import annotations

import os
import signal
import socket
import sys
from importlib.util import find_spec

HELLO = b"ptxemu"  # what a Python without ptxemu does not say, or without what it needs
NEEDED = ("_cffi_backend", "llvmlite", "msgspec", "ply", "zstandard")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdigit():
        print("usage: python -m ptxemu.serve FD (a socket; programs start it themselves)", file=sys.stderr)
        return 2
    try:
        stream = socket.socket(fileno=int(arguments[0]))
        os.set_inheritable(stream.fileno(), False)
    except OSError as error:
        print(f"ptxemu.serve: file descriptor {arguments[0]} is not a socket: {error.strerror}", file=sys.stderr)
        return 2
    if not all(map(find_spec, NEEDED)):
        return 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program; if it ends, so does this
    from ptxemu.serve.protocol import Channel

    channel = Channel(stream)
    try:
        channel.send([HELLO])
    except ConnectionError:  # the program has ended: it was started before it was needed
        return 0

    from ptxemu.process.gc_pause import collector_paused

    with collector_paused():
        from ptxemu.cache import Cache
        from ptxemu.serve.server import Server, deadline_from_environment
        from ptxemu.serve.warm import warm

        warm()
    Server(channel, Cache.from_environment(), deadline_from_environment()).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

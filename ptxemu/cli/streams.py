"""The standard streams: always open, and able to print every text."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

from ptxemu.cli.colours import say

READ_END = {"stdin": os.O_RDONLY, "stdout": os.O_RDONLY, "stderr": os.O_RDWR}


def prepare() -> None:
    """Make the streams usable. A closed one is opened, lest the next file take its place; writing to stdout then fails."""
    for descriptor, (name, flags) in enumerate(READ_END.items()):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, io.TextIOWrapper(io.FileIO(descriptor, mode), encoding="utf-8", line_buffering=name == "stderr"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(text: str) -> None:
    """Print a message on stderr, if that can be written."""
    with suppress(OSError):
        say(text, err=True)


def finish() -> None:
    """Nothing more will be written: what a stream could not write must not be tried again when the interpreter ends."""
    for stream, descriptor in ((sys.__stdout__ or sys.stdout, 1), (sys.__stderr__ or sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)

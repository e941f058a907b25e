"""The entry point of the front end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from ptxemu.errors import Diagnostics
from ptxemu.source import SourceFile
from ptxemu.syntax.ast import Module
from ptxemu.syntax.stream import TokenStream
from ptxemu.syntax.tables import tables


def parse(source: SourceFile, diagnostics: Diagnostics, *, fast: bool = True) -> Module:
    """Parse a PTX module. Errors go to ``diagnostics``; after one the module holds what could be read.

    ``fast=False`` sends every statement through the grammar: the same tree, slowly.
    """
    stream = TokenStream(source, diagnostics, fast)
    parser = copy(tables())
    parser.errorfunc = lambda token: stream.syntax_error(token, parser)
    with collector_paused():
        parser.parse(lexer=stream)
    return stream.module


@contextmanager
def collector_paused() -> Iterator[None]:
    """A tree is many objects and no cycles: searching it for garbage over and over takes half of the parser's time.

    Freezing and unfreezing moves the tree to the oldest generation unsearched; not where the host has frozen objects.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()

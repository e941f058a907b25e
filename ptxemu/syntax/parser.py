"""The entry point of the front end."""

from __future__ import annotations

from copy import copy

from ptxemu.syntax.ast import Module
from ptxemu.syntax.stream import TokenStream
from ptxemu.syntax.tables import tables
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile


def parse(source: SourceFile, diagnostics: Diagnostics, *, fast: bool = True) -> Module:
    """Parse a PTX module. Errors go to ``diagnostics``; after one the module holds what could be read.

    ``fast=False`` sends every statement through the grammar: the same tree, slowly.
    """
    stream = TokenStream(source, diagnostics, fast)
    parser = copy(tables())
    parser.errorfunc = lambda token: stream.syntax_error(token, parser)
    parser.parse(lexer=stream)
    module = stream.module
    for made in (parser, stream):
        vars(made).clear()  # their parts refer to them: without this the tree would wait for the collector
    return module

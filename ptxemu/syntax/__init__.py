"""PTX text to abstract syntax tree.

:func:`parse` runs one small PLY grammar (:mod:`~ptxemu.syntax.grammar`) over a token stream that recognises the
statements whose shape it has met before (:mod:`~ptxemu.syntax.scanner`) and hands them to the grammar ready-made.
"""

from __future__ import annotations

from ptxemu.errors import Diagnostics
from ptxemu.source import SourceFile
from ptxemu.syntax import ast
from ptxemu.syntax.parser import parse

__all__ = ["Diagnostics", "SourceFile", "ast", "parse"]

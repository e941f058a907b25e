"""PTX text to abstract syntax tree.

:func:`~ptxemu.syntax.parser.parse` runs one small PLY grammar (:mod:`~ptxemu.syntax.grammar`) over a token stream that
recognises the statements whose skeleton it has met before (:mod:`~ptxemu.syntax.scanner`) and hands them to the grammar
ready-made.
"""

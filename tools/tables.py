"""Writes the parser's LALR tables: ``python tools/tables.py ptxemu/syntax/_tables.py``.

They follow from the symbols and the productions alone.  So the grammar's functions are read without their bodies, and what
these import need not be installed where the package is built: PLY is enough.
"""

from __future__ import annotations

import ast
import inspect
import shutil
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from ply import yacc

ROOT = Path(__file__).resolve().parent.parent


def productions(name: str) -> ModuleType:
    """The module of that name, with nothing in it but productions: functions that are a docstring."""
    path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("p_")]
    for function in functions:
        function.body = function.body[:1]
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # where PLY looks up the module of a function
    code = compile(ast.Module([*functions], []), path, "exec", flags=annotations.compiler_flag)  # these are not evaluated
    exec(code, vars(module))
    return module


def grammar() -> ModuleType:
    """What PLY needs to know of :mod:`ptxemu.syntax.grammar`."""
    sys.path.insert(0, str(ROOT))
    from ptxemu.syntax import symbols

    values, module = productions("ptxemu.syntax.values"), productions("ptxemu.syntax.grammar")
    rules = {name: rule for part in (values, module) for name, rule in vars(part).items() if name.startswith("p_")}
    for rule in rules.values():
        rule.__doc__ = inspect.cleandoc(rule.__doc__)
    vars(module).update(rules, tokens=symbols.tokens, start=symbols.start, precedence=symbols.precedence)
    module.p_error = lambda token: None  # type: ignore[attr-defined]
    return module


def write(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        yacc.yacc(module=grammar(), tabmodule="_tables", outputdir=folder, debug=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(folder, "_tables.py"), path)


if __name__ == "__main__":
    write(Path(sys.argv[1]))

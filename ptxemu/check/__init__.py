"""The checker: syntax tree and instruction table to typed IR. Every semantic error of PTX is reported here."""

from __future__ import annotations

from ptxemu.check.body import BodyChecker, Context
from ptxemu.check.declarations import Declarer, same_signature
from ptxemu.check.gates import target_number
from ptxemu.check.initialisers import Encoder
from ptxemu.check.operands import TooManyErrors
from ptxemu.errors import Diagnostics, UnsupportedError
from ptxemu.ir import Function, Module, SymRef, Variable
from ptxemu.source import SourceFile
from ptxemu.syntax import ast

__all__ = ["check"]


def check(tree: ast.Module, source: SourceFile, diagnostics: Diagnostics, strict: bool = False) -> Module:
    """Resolve and type a module. Errors go to ``diagnostics``; the module is usable only if there are none.

    ``strict`` enforces the version and target of every form, and rejects what is accepted with a warning otherwise.
    """
    return _ModuleChecker(tree, source, diagnostics, strict).run()


class _ModuleChecker:
    def __init__(self, tree: ast.Module, source: SourceFile, diagnostics: Diagnostics, strict: bool) -> None:
        self.tree = tree
        self.diagnostics = diagnostics
        self.strict = strict
        self.module = Module(source, tree.version or (0, 0), tree.target, {}, {}, tree.files, tree.locs)
        self.symbols: dict[str, SymRef] = {}
        self.declarer = Declarer(diagnostics)
        self.initialised: list[tuple[Variable, ast.Init | ast.InitList]] = []
        self.bodies: list[tuple[Function, ast.Function]] = []

    def run(self) -> Module:
        self._header()
        for item in self.tree.items:
            if isinstance(item, ast.Variable):
                self._variable(item)
            elif isinstance(item, ast.Function):
                self._function(item)
            elif isinstance(item, ast.Alias):
                self._alias(item)
        encoder = Encoder(self.diagnostics, self._symbol)
        for variable, init in self.initialised:
            encoder.encode(variable, init)
        context = Context(self.diagnostics, self.declarer, self.symbols, self._gates())
        try:
            for function, node in self.bodies:
                if node.body is not None:
                    function.body = BodyChecker(context, function, node).check(node.body)
        except TooManyErrors:
            pass
        return self.module

    # ------------------------------------------------------------ header

    def _header(self) -> None:
        tree = self.tree
        if tree.version is None:
            self.diagnostics.error("the module has no .version directive", 0)
        if not tree.target:
            self.diagnostics.error("the module has no .target directive", tree.version_pos)
        if tree.address_size == 32:
            line = self.module.source.line(tree.address_size_pos)
            raise UnsupportedError(f"{self.module.source.name}:{line}: 32-bit addresses are not supported")
        if tree.address_size not in (None, 64):
            self.diagnostics.error(f".address_size {tree.address_size} is not 32 or 64", tree.address_size_pos)

    def _gates(self) -> tuple[tuple[int, int], int] | None:
        if not self.strict:
            return None
        number = target_number(self.tree.target)
        if number is None and self.tree.target:
            self.diagnostics.error(f"unknown target '{self.tree.target[0]}'", self.tree.target_pos)
        return self.tree.version or (0, 0), number or 0

    # ------------------------------------------------------------ declarations

    def _variable(self, node: ast.Variable) -> None:
        old = self.symbols.get(node.name)
        if old is not None and not _redeclares(old, node):
            self.diagnostics.error(f"'{node.name}' is declared twice", node.pos, node.end)
            return
        variable = self.declarer.variable(node, node.name, None)
        if variable is None:
            return
        if old is not None and isinstance(old.symbol, Variable) and node.linkage == "extern":
            return
        self.module.variables[node.name] = variable
        self.symbols[node.name] = SymRef(variable, 0)
        if node.init is not None:
            self.initialised.append((variable, node.init))

    def _function(self, node: ast.Function) -> None:
        function = self.declarer.function(node)
        if function is None:
            return
        old = self.module.functions.get(node.name)
        if old is not None:
            if not same_signature(old, function):
                self.diagnostics.error(f"'{node.name}' is declared differently before", function.pos)
                return
            if node.body is None:
                return
            if any(known is old for known, _ in self.bodies):
                self.diagnostics.error(f"function '{node.name}' is defined twice", function.pos)
                return
            self._complete(old, function)
            function = old
        elif node.name in self.symbols:
            self.diagnostics.error(f"'{node.name}' is declared twice", function.pos)
            return
        self.module.functions[node.name] = function
        self.symbols[node.name] = SymRef(function, 0)
        if node.body is not None:
            self.bodies.append((function, node))

    def _complete(self, declared: Function, defined: Function) -> None:
        """A definition after a declaration: the same object, so that references to it stay valid."""
        declared.params, declared.returns, declared.pos = defined.params, defined.returns, defined.pos
        declared.limits |= defined.limits
        declared.noreturn |= defined.noreturn
        declared.linkage = declared.linkage if declared.linkage not in ("", "extern") else defined.linkage

    def _alias(self, node: ast.Alias) -> None:
        function = self.module.functions.get(node.target.text)
        if function is None:
            self.diagnostics.error(f"'{node.target.text}' is not a function", node.target.pos, node.target.end)
            return
        self.module.functions[node.name.text] = function
        self.symbols[node.name.text] = SymRef(function, 0)

    def _symbol(self, name: ast.Name) -> SymRef | None:
        found = self.symbols.get(name.text)
        if found is None:
            self.diagnostics.error(f"unknown name '{name.text}'", name.pos, name.end)
        return found


def _redeclares(old: SymRef, node: ast.Variable) -> bool:
    """An ``.extern`` declaration may stand beside the definition."""
    symbol = old.symbol
    return isinstance(symbol, Variable) and "extern" in (symbol.linkage, node.linkage) and symbol.space == node.space

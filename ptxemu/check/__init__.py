"""The checker: syntax tree and instruction table to typed IR. Every semantic error of PTX is reported here."""

from __future__ import annotations

import re

from ptxemu.check.body import BodyChecker, Shared
from ptxemu.check.capacity import check_constants, check_parameters, check_shared
from ptxemu.check.declarations import Declarer, same_signature
from ptxemu.check.gates import Gates
from ptxemu.check.header import check_header, target_parts
from ptxemu.check.initialisers import Encoder
from ptxemu.check.operands import TooManyErrors
from ptxemu.check.placement import after_head, function_problems, pragma_problem
from ptxemu.check.sections import check_sections
from ptxemu.ir.ops import Function, Module, Op, SymRef, Variable
from ptxemu.syntax import ast
from ptxemu.syntax.declarations import UNNAMED
from ptxemu.text.errors import Diagnostics, UnsupportedError
from ptxemu.text.source import SourceFile, after_blanks
from ptxemu.text.suggestions import closest

__all__ = ["check"]

PARAMETERS_END = re.compile(r"[\s(]*\)")
GRAPH_CALLS = (
    "Launch",
    "SetConditional",
    "KernelNodeSetEnabled",
    "KernelNodeSetParam",
    "KernelNodeSetGridDim",
    "KernelNodeUpdatesApply",
)
SYSTEM_CALLS = frozenset({"vprintf", "malloc", "free", "__assertfail", *(f"cudaGraph{name}" for name in GRAPH_CALLS)})
"""Functions that the driver provides, so that ptxas 13.0 does not ask for their definitions."""


def check(tree: ast.Module, source: SourceFile, diagnostics: Diagnostics) -> Module:
    """Resolve and type a module. Errors go to ``diagnostics``; the module is usable only if there are none."""
    return _ModuleChecker(tree, source, diagnostics).run()


class _ModuleChecker:
    def __init__(self, tree: ast.Module, source: SourceFile, diagnostics: Diagnostics) -> None:
        self.tree = tree
        self.diagnostics = diagnostics
        self.strict = diagnostics.strict
        self.module = Module(source, tree.version or (0, 0), tree.target, {}, {}, tree.files, tree.locs)
        self.symbols: dict[str, SymRef] = {}
        self.declarer = Declarer(diagnostics, self.module.version, self._gates())
        self.initialised: list[tuple[Variable, ast.Init | ast.InitList]] = []
        self.spaces: dict[str, list[str]] = {}  # of the parameters of a function, in its first declaration
        self.aliases: set[str] = set()
        self.declared_at: dict[str, int] = {}  # where a name was declared first
        self.bodies: list[tuple[Function, ast.Function]] = []
        self.defined: set[Function] = set()

    def run(self) -> Module:
        self._header()
        for item in self.tree.items:
            if isinstance(item, ast.Variable):
                self._variable(item)
            elif isinstance(item, ast.Function):
                self._function(item)
            elif isinstance(item, ast.Alias):
                self._alias(item)
            elif (problem := pragma_problem(item)) is not None:
                self.diagnostics.extension(problem, item.pos, item.end)
        encoder = Encoder(self.diagnostics, self._symbol)
        for variable, init in self.initialised:
            self.declarer.initialise(encoder, variable, init)
        independent = "texmode_independent" in self.tree.target
        declared_at = self.declared_at if self.strict else {}
        version, target = self.module.version, target_parts(self.tree.target)[0] or 0
        shared = Shared(self.diagnostics, self.declarer, self.symbols, self._gates(), independent, declared_at, version, target)
        try:
            for function, node in self.bodies:
                if node.body is not None:
                    function.body = BodyChecker(shared, function, node).check(node.body)
            self._limits()
            if self.strict:
                check_sections(self.tree, self.diagnostics)
        except TooManyErrors:
            pass
        unsupported = self.declarer.unsupported or shared.unsupported
        if unsupported is not None and not self.diagnostics.errors:
            raise unsupported
        return self.module

    def _limits(self) -> None:
        version, target = self.tree.version or (0, 0), target_parts(self.tree.target)[0]
        check_constants(self.module, self.diagnostics)
        check_shared(self.module.functions.values(), self.module.variables.values(), self.diagnostics)
        for function, node in self.bodies:
            if function in self.defined:
                check_parameters(function, node.end - 1, version, target, self.diagnostics)
        if self.strict and self.diagnostics.alone and not (self.diagnostics.errors or self.diagnostics.damage):
            self._unresolved()

    def _unresolved(self) -> None:
        """What a program of one module cannot resolve: ptxas links what it assembles."""
        for function in self.module.functions.values():
            if function.body is None and function.linkage != "extern" and function.name not in SYSTEM_CALLS:
                message = f"'{function.name}' is declared but not defined"
                self.diagnostics.error(message, function.pos, function.pos + len(function.name))
            for item in function.body or ():
                if isinstance(item, Op) and item.call is not None and isinstance(item.call.callee, Function):
                    self._reachable(item.call.callee, item)
        for variable in self.module.variables.values():
            if variable.linkage == "extern" and variable.space != "shared" and {None, 0} & set(variable.dims):
                self.diagnostics.error(f"'{variable.name}' is .extern and not defined", variable.pos)

    # ------------------------------------------------------------ header

    def _header(self) -> None:
        tree = self.tree
        check_header(tree, self.diagnostics, self.strict)
        if tree.address_size == 32 and self.strict:
            self.diagnostics.error("32-bit addresses are not supported any more", tree.address_size_pos)
        elif tree.address_size == 32:
            line = self.module.source.line(tree.address_size_pos)
            raise UnsupportedError(f"{self.module.source.name}:{line}: 32-bit addresses are not supported")

    def _gates(self) -> Gates | None:
        number, suffix = target_parts(self.tree.target)
        version = (6, 0) if self.tree.version == (5, 1) else self.tree.version or (0, 0)  # two names of one version to ptxas
        return (version, number, suffix) if self.strict and number and self.tree.version else None

    def _reachable(self, callee: Function, call: Op) -> None:
        if callee.body is None and callee.name not in SYSTEM_CALLS:
            self.diagnostics.error(f"'{callee.name}' is declared but not defined", call.pos, call.end)

    # ------------------------------------------------------------ declarations

    def _variable(self, node: ast.Variable) -> None:
        self.declared_at.setdefault(node.name, node.end if node.init is None else node.init.end)
        old = self.symbols.get(node.name)
        if old is not None and not _redeclares(old, node):
            line = self.module.source.line(old.symbol.pos)
            notes = (f"the first declaration is on line {line}",)
            self.diagnostics.error(f"'{node.name}' is declared twice", node.pos, node.end, notes)
            return
        variable = self.declarer.variable(node, node.name, None) if self.declarer.placed(node, "module") else None
        if variable is None:
            self.diagnostics.damage.names.add(node.name)
            return
        if old is not None and isinstance(old.symbol, Variable) and node.linkage == "extern":
            return
        self._sampler(node)
        self.module.variables[node.name] = variable
        self.symbols[node.name] = SymRef(variable, 0)
        if node.init is not None:
            self.initialised.append((variable, node.init))

    def _function(self, node: ast.Function) -> None:
        if node.name != UNNAMED:
            self.declared_at.setdefault(node.name, node.pos)
            for formal in node.params:
                self._sampler(formal)
            for message, pos, end in function_problems(node, self._gates(), self.diagnostics.source):
                self.diagnostics.error(message, pos, end)
        function, complete = self.declarer.function(node)
        if node.body is not None:
            self.bodies.append((function, node))  # to be checked, whatever is wrong with its head
        if node.name == UNNAMED:
            return
        if not complete:
            self.diagnostics.damage.names.add(node.name)
            return
        self._head(node, function)

    def _head(self, node: ast.Function, function: Function) -> None:
        """Give a function its name, unless that means something else."""
        old = self.module.functions.get(node.name)
        if old is not None:
            spaces = [formal.space for formal in (*node.params, *node.returns)]
            if not same_signature(old, function) or self.spaces[node.name] != spaces or self._other_linkage(old, node):
                line = self.module.source.line(self.declared_at[node.name])
                message, notes = f"'{node.name}' is declared differently before", (f"the declaration is on line {line}",)
                self.diagnostics.error(message, *self._head_read(node), notes)
                return
            if old in self.defined:
                self.diagnostics.error(f"function '{node.name}' is defined twice", *self._head_read(node))
                return
            if node.body is None:
                return
            self._complete(old, function)
            self.bodies[-1] = (old, node)
            function = old
        elif node.name in self.symbols:
            self.diagnostics.error(f"'{node.name}' is declared twice", *self._head_read(node))
            return
        self.module.functions[node.name] = function
        self.spaces.setdefault(node.name, [formal.space for formal in (*node.params, *node.returns)])
        self.symbols[node.name] = SymRef(function, 0)
        if node.body is not None:
            self.defined.add(function)

    def _other_linkage(self, old: Function, node: ast.Function) -> bool:
        """A second declaration repeats the linkage of the first; a definition does, or has none."""
        if node.body is None:
            return old not in self.defined and old.linkage != node.linkage
        return old.linkage == "extern" or node.linkage not in ("", old.linkage)

    def _head_read(self, node: ast.Function) -> tuple[int, int]:
        """From where a function can be named: a kernel from the end of its parameters, a device function from behind its head."""
        source, start = self.diagnostics.source, node.name_pos or node.pos
        name = start, start + len(node.name)
        if node.body is None and not source.text.startswith(";", node.end - 1):  # a declaration of an early compiler
            pos = after_blanks(source.text, node.end)
            return name if source.line(pos) == source.line(start) else (pos, pos + 1)
        closed = PARAMETERS_END.match(source.text, node.params[-1].end if node.params else name[1])
        if node.kind == "func" or (closed is None and not node.directives):
            pos = after_head(node)[0]
        else:
            pos = closed.end() - 1 if closed else node.directives[0].pos
        return name if source.line(pos) == source.line(start) else (pos, pos + 1)

    def _sampler(self, node: ast.Variable) -> None:
        if node.type == "samplerref" and not node.dims and "texmode_independent" not in self.tree.target:
            self.diagnostics.extension("a samplerref needs '.target texmode_independent'", node.pos, node.end)

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
        declared = self.module.functions.get(node.name.text)
        defined = any(known is declared for known, _ in self.bodies) or node.name.text in self.aliases
        known = declared is not None and not defined and same_signature(declared, function)
        if not known and (declared is not None or self.strict):
            message = f"'{node.name.text}' must be declared before, like '{node.target.text}' and without a body"
            self.diagnostics.error(message, node.name.pos, node.name.end)
            return
        if function.linkage == "weak":
            message = f"'{node.target.text}' is .weak and cannot have an alias"
            self.diagnostics.extension(message, node.target.pos, node.target.end)
        self.aliases.add(node.name.text)
        self.module.functions[node.name.text] = function
        self.symbols[node.name.text] = SymRef(function, 0)

    def _symbol(self, name: ast.Name) -> SymRef | None:
        found = self.symbols.get(name.text)
        if found is None and not (self.diagnostics.full or self.diagnostics.damage.hides(name.text)):
            self.diagnostics.error(f"unknown name '{name.text}'{closest(name.text, self.symbols)}", name.pos, name.end)
        elif found is not None and self.declared_at.get(name.text, 0) > name.pos:
            self.diagnostics.extension(f"'{name.text}' must be declared before it is used here", name.pos, name.end)
        return found


def _redeclares(old: SymRef, node: ast.Variable) -> bool:
    """An ``.extern`` declaration may stand beside the definition."""
    symbol = old.symbol
    if not isinstance(symbol, Variable) or symbol.space != node.space or symbol.type.name != node.type:
        return False
    if "extern" not in (symbol.linkage, node.linkage) or node.linkage == "":
        return False
    return len(symbol.dims) == len(node.dims) and all(a == b or None in (a, b) for a, b in zip(symbol.dims, node.dims))

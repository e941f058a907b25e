"""Variables and function signatures: from syntax to IR (PTX ISA, "State Spaces, Types, and Variables")."""

from __future__ import annotations

from ptxemu.check.gates import Gates
from ptxemu.check.initialisers import Encoder
from ptxemu.check.placement import TRIPLE_DIRECTIVES, declaration_problem, gate_problem
from ptxemu.ir.ops import Function, Param, Variable
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.syntax import ast
from ptxemu.text.errors import Diagnostics, UnsupportedError
from ptxemu.text.source import after_blanks

DATA_KINDS = frozenset({"u", "s", "b", "f", "packed"})
PARAMETER_SPACES = frozenset({"param", "reg"})
MOST_BYTES = 1 << 40  # of a variable: more than any device has
REMOVED = {"local": (3, 0), "tex": (1, 5)}  # since when there are no such variables of modules
INITIALISED = frozenset({"global", "const"})


class Declarer:
    """Makes IR variables and functions, and reports declarations that are wrong."""

    def __init__(self, diagnostics: Diagnostics, version: tuple[int, int], gates: Gates | None = None) -> None:
        self.diagnostics = diagnostics
        self.version = version
        self.gates = gates
        self.unsupported: UnsupportedError | None = None  # the first one, to be raised when all is checked

    def error(self, message: str, node: ast.Variable | ast.Function) -> None:
        self.diagnostics.error(message, node.pos, node.end)

    # ------------------------------------------------------------ variables

    def scalar_type(self, node: ast.Variable) -> ScalarType | None:
        """The declared type, reported if there is no such type."""
        kind = TYPES.get(node.type)
        if kind is None:
            self.error(f"unknown type '.{node.type}' of '{node.name}'", node)
        return kind

    def placed(self, node: ast.Variable, scope: str) -> bool:
        """Report what cannot be declared in a ``module``, ``body``, ``entry``, ``func`` or ``prototype``."""
        gated = gate_problem(node, self.gates)
        if gated is not None:
            self.error(gated, node)
        if scope == "module" and self.version < REMOVED.get(node.space, (0, 0)):
            what = f"a module-scope .{node.space} variable, as there were before PTX {'.'.join(map(str, REMOVED[node.space]))},"
            refusal = UnsupportedError(f"{self.diagnostics.source.where(node.pos)}: {what} is not supported")
            self.unsupported = self.unsupported or refusal
            return False
        problem = declaration_problem(node, scope)
        misplaced = scope in ("func", "prototype") and node.space not in PARAMETER_SPACES
        if problem is not None and (misplaced or (scope == "entry" and None in node.dims)):
            self._late_error(problem, node)
        elif problem is not None:
            self.error(problem, node)
        return problem is None

    def _late_error(self, message: str, node: ast.Variable) -> None:
        """Report at a parameter, or, as ptxas does, at what follows it if that is on another line."""
        source = self.diagnostics.source
        following = after_blanks(source.text, node.end)
        if source.line(following) == source.line(node.pos):
            self.error(message, node)
        else:
            self.diagnostics.error(message, following)

    def variable(self, node: ast.Variable, name: str, owner: str | None) -> Variable | None:
        """A variable outside registers, without its initial value; None if the declaration is wrong."""
        space, kind = ("global", TYPES["texref"]) if node.space == "tex" else (node.space, self.scalar_type(node))
        if kind is None or not self._legal(node, kind, space, owner):
            return None
        dims = self._extents(node)
        if dims is None:
            return None
        element = kind.bytes * (node.vector or 1)
        size = element
        for extent in dims:
            size *= extent or 0
            if size > MOST_BYTES:
                self.error(f"'{node.name}' takes more than {MOST_BYTES} bytes", node)
                return None
        align = node.align or element
        return Variable(name, space, kind, node.vector, dims, size, align, [], [], node.linkage, node.pos, [], owner)

    def _legal(self, node: ast.Variable, kind: ScalarType, space: str, owner: str | None) -> bool:
        if node.init is not None and node.linkage == "extern":
            self.error(f"'{node.name}' is .extern and cannot have an initial value", node)
        elif kind.kind == "opaque":
            if space == "param" or (space == "global" and owner is None):
                return True
            self.error(f"a {kind} must be a module-scope .global variable or a kernel parameter", node)
        elif kind.kind not in DATA_KINDS and not (kind is PRED and space == "reg"):
            self.error(f"'{node.name}' of type {kind} must be a register", node)
        elif node.align & (node.align - 1):
            self.error(f"the alignment {max(node.align, 0)} of '{node.name}' is not a power of two", node)
        elif node.align >= 1 << 32:
            self.error(f"the alignment {node.align} of '{node.name}' does not fit 32 bits", node)
        elif node.init is not None and space not in INITIALISED:
            self.error(f"'{node.name}' in .{space} space cannot have an initial value", node)
        else:
            return True
        return False

    def _extents(self, node: ast.Variable) -> tuple[int | None, ...] | None:
        """The extents; an open first one (or 0, which ptxas takes for open) is closed by the initialiser. None if impossible."""
        if None in node.dims[1:]:
            self.error(f"only the first extent of '{node.name}' may be left out", node)
            return None
        if not node.dims or node.dims[0]:
            return node.dims
        if isinstance(node.init, ast.InitList) and node.init.items:
            return (len(node.init.items), *node.dims[1:])
        if node.dims[0] is not None:
            return node.dims
        if node.linkage == "extern" or node.space == "param":
            return node.dims
        self.error(f"'{node.name}' has no size: give its extent, an initial value or .extern", node)
        return None

    def initialise(self, encoder: Encoder, variable: Variable, init: ast.Init | ast.InitList) -> None:
        try:
            encoder.encode(variable, init)
        except UnsupportedError as problem:
            self.unsupported = self.unsupported or problem

    # ------------------------------------------------------------ functions

    def function(self, node: ast.Function) -> tuple[Function, bool]:
        """The signature of a function, its body still None; and whether all of its parameters are right."""
        params: list[Param] = []
        offset = 0
        for formal in node.params:
            variable = self.formal(formal, node.name, node.kind)
            if variable is None:
                continue
            offset = -(-offset // variable.align) * variable.align
            params.append(Param(variable, offset, formal.ptr))
            offset += variable.size
        returns = [self.formal(formal, node.name, "func") for formal in node.returns]
        limits = {directive.name: _limit(directive) for directive in node.directives}
        noreturn = limits.pop("noreturn", None) is not None
        kept = [variable for variable in returns if variable is not None]
        complete = len(params) == len(node.params) and len(kept) == len(node.returns)
        if not complete:
            params, kept = [], []
        position = node.name_pos or node.pos
        return Function(node.name, node.kind, node.linkage, params, kept, None, [], limits, position, noreturn), complete

    def formal(self, node: ast.Variable, owner: str, scope: str) -> Variable | None:
        """A formal parameter of an ``entry``, ``func`` or ``prototype``.

        One declared ``.reg`` is passed in parameter memory as well.
        """
        if not self.placed(node, scope):
            return None
        kind = TYPES.get(node.type)
        if scope == "entry" and node.space != "param":
            self._late_error(f"the kernel parameter '{node.name}' must be .param", node)
            return None
        if kind is not None and kind.kind == "opaque" and scope == "func":
            self.error(f"a {kind} cannot be a parameter of a .func", node)
            return None
        if kind is PRED and scope == "prototype" and node.space != "reg":
            source = self.diagnostics.source
            problem = f"{source.where(node.pos)}: .param parameters of type .pred are not supported"
            self.unsupported = self.unsupported or UnsupportedError(problem)
            return None
        variable = self.variable(node, node.name, owner)
        if variable is not None:
            variable.space = "param"
        return variable


def _limit(directive: ast.Directive) -> tuple[int, ...]:
    values = tuple(value for value in directive.values if isinstance(value, int))
    if directive.name in TRIPLE_DIRECTIVES:
        return (*values, 1, 1)[:3]
    return values


def same_signature(first: Function, second: Function) -> bool:
    """Whether two declarations of a function agree."""

    def shape(variables: list[Variable]) -> list[tuple[int, int, str]]:
        return [(variable.size, variable.align, variable.type.name) for variable in variables]

    def formals(function: Function) -> list[Variable]:
        return [param.variable for param in function.params]

    agree = shape(formals(first)) == shape(formals(second)) and shape(first.returns) == shape(second.returns)
    return first.kind == second.kind and agree

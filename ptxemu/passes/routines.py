"""Which device functions stay functions: those that recurse and those that are called through an address.

Everything else is inlined, except where that would make the code of a kernel explode.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.ir.graph import symbols
from ptxemu.ir.ops import Call, Function, Module, Op, Reg, Variable
from ptxemu.passes.inline import Item, inline
from ptxemu.text.errors import UnsupportedError

MAX_INLINED = 2000  # ops of a body with all its calls expanded, beyond which a function called twice is not copied
MAX_COPIED = 4000  # ops of all copies of a function together
ALWAYS_INLINED = 20  # ops of a body that is not worth a call, however often it is called
MAX_WAITING = 10 * MAX_INLINED  # the same for a function that must not stay one
MAX_NESTING = 32  # calls expanded inside calls


class Routine(Struct, eq=False):
    """A body that is compiled as a function of its own: the kernel's (always the first) or a device function's.

    ``variables`` are the function-scope variables it uses. Every call left in ``body`` is a real one or of an external
    function; ``targets`` of the real ones list the functions that they may reach.
    """

    function: Function
    body: list[Item]
    variables: list[Variable]


def routines(module: Module, entry: Function, chosen: frozenset[Function] = frozenset()) -> list[Routine]:
    """The kernel and all functions that it reaches through real calls.

    Indirect calls that may reach a function in ``chosen`` become a choice between direct calls; and these are copied if they
    are not very large.
    """
    graph = _CallGraph(module, entry, chosen)
    found: dict[Function, Routine] = {}
    work = [entry]
    while work:
        function = work.pop()
        if function in found:
            continue
        body, variables = inline(function, graph.kept, graph.choices)
        body = [graph.resolved(item) if isinstance(item, Op) else item for item in body]
        found[function] = Routine(function, body, variables)
        work += [target for call in _calls(body) for target in call.targets or ()]
    made = list(found.values())
    for routine in made:
        _require_closed_parameters(module, routine.function)
    _mark_exits(made)
    return made


def _require_closed_parameters(module: Module, function: Function) -> None:
    for param in function.params:
        if None in param.variable.dims:
            where = module.source.where(function.pos)
            what = f"the open array parameter '{param.variable.name}' of '{function.name}'"
            raise UnsupportedError(f"{where}: {what}, which recurses or is called indirectly, is not supported")


def _calls(body: list[Item]) -> Iterator[Call]:
    for item in body:
        if isinstance(item, Op) and item.call is not None:
            yield item.call


def _mark_exits(made: list[Routine]) -> None:
    """Set ``exits`` of calls in which a thread may leave the kernel."""
    exiting = {
        routine.function for routine in made if any(isinstance(i, Op) and i.effects.leaves == "kernel" for i in routine.body)
    }
    changed = True
    while changed:
        callers = {r.function for r in made if any(exiting.intersection(call.targets or ()) for call in _calls(r.body))}
        changed = not callers <= exiting
        exiting |= callers
    for routine in made:
        for call in _calls(routine.body):
            call.exits = bool(exiting.intersection(call.targets or ()))


# ---------------------------------------------------------------- the call graph


class _CallGraph:
    """Decides, from the functions that a kernel reaches, which to keep (``kept``)."""

    def __init__(self, module: Module, entry: Function, chosen: frozenset[Function]) -> None:
        self.module = module
        self.chosen = chosen
        self.kept: set[Function] = set()
        self.calls: dict[Function, int] = {}  # direct calls
        self.size: dict[Function, int] = {}
        self.nesting: dict[Function, int] = {}
        self._taken: list[Function] | None = None
        roots = self._reachable(entry)
        for root in roots:
            self._visit(root)

    def _reachable(self, entry: Function) -> list[Function]:
        """The entry and the targets of indirect calls, in the order in which they are reached; counts direct calls."""
        roots, work, seen = [entry], [entry], {entry}
        while work:
            for call in _calls(work.pop().body or []):
                for direct in self._direct(call):
                    self.calls[direct] = self.calls.get(direct, 0) + 1
                targets = self.targets(call)
                if isinstance(call.callee, Reg):
                    roots += [target for target in targets if target not in seen]
                fresh = [target for target in targets if target not in seen]
                seen.update(fresh)
                work += fresh
        return roots

    def _visit(self, root: Function) -> None:
        """Depth first along direct calls: a call of a function that is still open closes a cycle, so that one is kept."""
        if root in self.size:
            return
        open_functions = {root}
        stack = [(root, iter(self._callees(root)))]
        while stack:
            function, callees = stack[-1]
            for callee in callees:
                if callee in open_functions:
                    self.kept.add(callee)
                elif callee not in self.size:
                    open_functions.add(callee)
                    stack.append((callee, iter(self._callees(callee))))
                    break
            else:
                stack.pop()
                open_functions.discard(function)
                self._measure(function)

    def _measure(self, function: Function) -> None:
        inlined = [callee for callee in self._callees(function) if callee not in self.kept]
        self.size[function] = len(function.body or ()) + sum(self.size[callee] for callee in inlined)
        self.nesting[function] = 1 + max((self.nesting[callee] for callee in inlined), default=0)
        if function.kind == "func" and (self._explodes(function) or self.nesting[function] > MAX_NESTING):
            self.kept.add(function)

    def _explodes(self, function: Function) -> bool:
        """Whether copies in place of the calls would be most of the code."""
        calls, size = self.calls.get(function, 0), self.size[function]
        if calls < 2 or size <= ALWAYS_INLINED:
            return False
        if function in self.chosen:
            return size > MAX_WAITING
        return size > MAX_INLINED or size * calls > MAX_COPIED

    def _callees(self, function: Function) -> list[Function]:
        return [callee for call in _calls(function.body or []) for callee in self._direct(call)]

    def _direct(self, call: Call) -> list[Function]:
        """The functions that a call may be replaced by."""
        return self.choices(call) if isinstance(call.callee, Reg) else self.targets(call)

    # -- indirect calls

    def choices(self, call: Call) -> list[Function]:
        """The targets of an indirect call that is to become direct ones, else none."""
        if not isinstance(call.callee, Reg) or not self.chosen:
            return []
        targets = self.targets(call)
        return targets if self.chosen.intersection(targets) else []

    def resolved(self, op: Op) -> Op:
        """A call with its possible targets filled in."""
        call = op.call
        if call is None or (isinstance(call.callee, Function) and call.callee.body is None):
            return op
        return replace(op, call=replace(call, targets=tuple(self.targets(call))))

    def targets(self, call: Call) -> list[Function]:
        if isinstance(call.callee, Function):
            return [call.callee] if call.callee.body is not None else []
        listed = self.taken if call.targets is None else list(dict.fromkeys(call.targets))
        assert call.prototype is not None
        return [function for function in listed if function.body is not None and _agrees(function, call.prototype)]

    @property
    def taken(self) -> list[Function]:
        """Device functions whose address the module takes anywhere, in the order of their definition."""
        if self._taken is None:
            found = {reloc.target for variable in _variables(self.module) for reloc in variable.relocs}
            for function in self.module.functions.values():
                for item in function.body or ():
                    if isinstance(item, Op):
                        found.update(symbol for source in item.srcs for symbol in symbols(source))
            functions = dict.fromkeys(self.module.functions.values())
            self._taken = [function for function in functions if function.kind == "func" and function in found]
        return self._taken


def _agrees(function: Function, prototype: tuple[tuple[Variable, ...], tuple[Variable, ...]]) -> bool:
    """Parameters and results of the same sizes: what the calling convention depends on."""

    def shape(variables: Iterator[Variable] | tuple[Variable, ...] | list[Variable]) -> list[tuple[int, bool]]:
        return [(variable.size, bool(variable.dims)) for variable in variables]

    formals = (param.variable for param in function.params)
    return shape(formals) == shape(prototype[0]) and shape(function.returns) == shape(prototype[1])


def _variables(module: Module) -> Iterator[Variable]:
    yield from module.variables.values()
    for function in module.functions.values():
        yield from function.variables

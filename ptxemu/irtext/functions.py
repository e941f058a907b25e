"""Reading one function of the IR's text: its head, and its code as a list or as blocks."""

from __future__ import annotations

from collections.abc import Mapping

from ptxemu.ir.graph import Block, Graph, Phis
from ptxemu.ir.ops import Function, Imm, LabelMark, Param, Reg, Symbol, Variable
from ptxemu.irtext.cursor import SPACES, Cursor, Lines, Problem
from ptxemu.irtext.declarations import declared
from ptxemu.irtext.operations import Operations, find
from ptxemu.irtext.printer import Body, Item


class FunctionReader:
    """Reads a function whose head is the current line of ``lines``."""

    def __init__(self, lines: Lines, function: Function, symbols: Mapping[str, Symbol], dialect: str) -> None:
        self.lines = lines
        self.function = function
        self.symbols = dict(symbols)
        self.incoming: dict[Variable, int] = {}
        self.blocks: dict[str, Block] = {}
        self.started: set[Block] = set()
        self.ops = Operations(dialect, self.symbols)

    def run(self) -> Body | None:
        while (line := self.lines.inside()) is not None:
            if line.text in ("{", "flat {"):
                return self.graph() if line.text == "{" else self.flat()
            self.head(Cursor(line.text), line.pos)
        return None

    # -- the head

    def head(self, cursor: Cursor, pos: int) -> None:
        word = cursor.word()
        function = self.function
        if word == "limit":
            name = cursor.word()
            function.limits[name] = tuple(cursor.integers())
        elif word == "unsynced":
            function.unsynced += ((cursor.name(), cursor.name()),)
        elif word == "uses":
            variable = find(self.symbols, cursor)
            assert isinstance(variable, Variable)
            function.variables.append(variable)
        elif word in ("formal", "return", "incoming", *SPACES):
            self.variable(word, cursor, pos)
        else:
            raise Problem(f"unknown word '{word}'")
        cursor.finish()

    def variable(self, word: str, cursor: Cursor, pos: int) -> None:
        space = {"formal": "param", "return": "param", "incoming": "local"}.get(word, word)
        variable = declared(cursor, space, pos)
        variable.owner = self.function.name
        if cursor.keyword("owner"):
            variable.owner = cursor.name() or None
        self.symbols[variable.name] = variable
        if word == "formal":
            self.function.params.append(self.formal(cursor, variable))
        elif word == "return":
            self.function.returns.append(variable)
        elif word == "incoming":
            cursor.expect("at")
            self.incoming[variable] = cursor.integer()
        else:
            self.function.variables.append(variable)

    @staticmethod
    def formal(cursor: Cursor, variable: Variable) -> Param:
        cursor.expect("at")
        param = Param(variable, cursor.integer())
        if cursor.keyword("ptr"):
            space = cursor.word()
            param.ptr = "" if space == "generic" else space, cursor.integer()
        if cursor.keyword("row"):
            param.row = cursor.integer(), cursor.integer()
        return param

    # -- the body

    def flat(self) -> Body:
        items: list[Item] = []
        while (line := self.lines.inside()) is not None:
            if line.text.startswith(" "):
                items.append(self.ops.op(Cursor(line.text), line.pos))
            else:
                cursor = Cursor(line.text)
                items.append(LabelMark(cursor.name(), line.pos))
                cursor.expect(":")
        self.require_types()
        self.function.body = items
        return Body(self.function, items, self.function.variables)

    def graph(self) -> Body:
        graph = Graph(self.function.name, [], self.function.variables, self.incoming)
        while (line := self.lines.inside()) is not None:
            if line.text.startswith(" "):
                if not graph.blocks:
                    raise Problem("a block expected")
                self.part(graph.blocks[-1], Cursor(line.text), line.pos)
            else:
                self.start(graph, Cursor(line.text))
        missing = [block.name for block in self.blocks.values() if block not in self.started]
        if missing:
            raise Problem(f"there is no block '{missing[0]}'")
        self.require_types()
        graph.link()
        return Body(self.function, graph, graph.variables)

    def require_types(self) -> None:
        for reg in self.ops.untyped:
            raise Problem(f"'{reg.name}' has no type")

    def block(self, name: str) -> Block:
        return self.blocks.setdefault(name, Block(name))

    def start(self, graph: Graph, cursor: Cursor) -> None:
        block = self.block(cursor.name())
        cursor.expect(":")
        if block in self.started:
            raise Problem(f"there are two blocks '{block.name}'")
        self.started.add(block)
        graph.blocks.append(block)
        if cursor.keyword("spins"):
            graph.spins.add(block)
        if cursor.keyword("joint"):
            cursor.expect("(")
            graph.joint[block] = [self.block(name) for name in cursor.list(cursor.name, ")")]
        cursor.finish()

    def part(self, block: Block, cursor: Cursor, pos: int) -> None:
        """A line inside a block: its terminator, a phi or an op."""
        if cursor.keyword("end"):
            block.pos = pos
        elif cursor.keyword("jump"):
            block.succs, block.pos = [self.block(cursor.name())], pos
        elif cursor.keyword("branch"):
            block.negated, block.pos = cursor.accept("!"), pos
            block.cond = self.ops.register(cursor)
            cursor.expect(",")
            block.succs = [self.block(name) for name in cursor.series(cursor.name)]
        elif cursor.keyword("switch"):
            self.switch(block, cursor, pos)
        elif " = phi " in cursor.text:
            self.phi(cursor, block.phis)
        else:
            block.ops.append(self.ops.op(cursor, pos))
        cursor.finish()

    def switch(self, block: Block, cursor: Cursor, pos: int) -> None:
        block.cond, block.pos = self.ops.register(cursor), pos
        cursor.expect(",")
        block.succs = [self.block(name) for name in cursor.series(cursor.name)]
        if not cursor.keyword("table"):
            raise Problem("'table' expected")
        block.table = tuple(cursor.integers())
        if not block.table or max(block.table) >= len(block.succs):
            raise Problem("the table has numbers of successors")

    def phi(self, cursor: Cursor, phis: Phis) -> None:
        dst = self.ops.definition(cursor)
        assert dst is not None
        cursor.expect("=")
        cursor.expect("phi")
        args: dict[Block, Reg | Imm] = {}
        while not cursor.done:
            if args:
                cursor.expect(",")
            pred = self.block(cursor.name())
            args[pred] = self.ops.value(cursor, dst.type)
        if phis and args.keys() != phis.args.keys():
            raise Problem("the phis of a block have values for the same blocks")
        phis.dsts.append(dst)
        for pred, arg in args.items():
            phis.args.setdefault(pred, []).append(arg)

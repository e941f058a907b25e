"""Where declarations may stand, and what they may say: state spaces, linkage, types, directives."""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.check.gates import Gates
from ptxemu.check.modifiers import MAX_VECTOR_BITS
from ptxemu.ir.types import OPAQUE, TYPES
from ptxemu.isa.special import SPECIAL_REGISTERS, TRIPLES
from ptxemu.syntax import ast
from ptxemu.text.source import SourceFile

TYPE_NEEDS: dict[str, tuple[tuple[int, int], int]] = {"b128": ((8, 3), 70)}
INSTRUCTION_TYPES = frozenset(["bf16", "tf32", *(name for name, kind in TYPES.items() if kind.kind == "packed")]) - {"f16x2"}
MAX_PARAMETER_ALIGN = 128
FUNCTION_DIRECTIVES = frozenset({"noreturn", "attribute", "abi_preserve", "abi_preserve_control", "pragma"})
CLUSTER = ((7, 8), 90)
DIRECTIVE_NEEDS = {
    "explicitcluster": CLUSTER, "reqnctapercluster": CLUSTER, "maxclusterrank": CLUSTER, "noreturn": ((6, 4), 30),
    "blocksareclusters": ((9, 0), 90), "abi_preserve": ((9, 0), 80), "abi_preserve_control": ((9, 0), 80),
    "minperctamemory": ((9, 4), 80),
}  # fmt: skip
BODY_PRAGMAS = frozenset({"used_bytes_mask", "enable_smem_spilling", "frequency"})
NEVER_POINTED_TO = frozenset({"reg", "param"}) | (TYPES.keys() - OPAQUE.keys())
TRIPLE_DIRECTIVES = frozenset({"maxntid", "reqntid", "reqnctapercluster"})
POSITIVE = frozenset({"maxntid", "reqntid", "minnctapersm", "maxnreg"})


def declaration_problem(node: ast.Variable, scope: str) -> str | None:
    """What is wrong with a declaration in a ``module``, ``body``, ``entry``, ``func`` or ``prototype``."""
    return next(_problems(node, scope), None)


def gate_problem(node: ast.Variable, gates: Gates | None) -> str | None:
    """What the type of a declaration needs that version and target do not give; the name can be used all the same."""
    (major, minor), sm = TYPE_NEEDS.get(node.type, ((0, 0), 0))
    if gates is None or (gates[0] >= (major, minor) and gates[1] >= sm):
        return None
    return f".{node.type} needs PTX {major}.{minor} and sm_{sm}"


def _problems(node: ast.Variable, scope: str) -> Iterator[str]:
    name, space, kind = node.name, node.space, TYPES.get(node.type)
    if name == "_" and scope in ("module", "body"):
        yield "'_' is not a name for a variable"
    if scope == "module" and is_special(name):
        yield f"'{name}' is a special register"
    if scope in ("func", "prototype") and space not in ("param", "reg"):
        yield f"the parameter '{name}' must be .param or .reg, not .{space}"
    if node.type in INSTRUCTION_TYPES:
        yield f".{node.type} is a type of instructions only; declare '{name}' with a .b type"
    if scope == "module" and space in ("reg", "local", "param"):
        yield f"'{name}' in .{space} space must be declared in a function"
    if node.linkage == "common" and kind is not None and kind.kind == "opaque":
        yield f"'{name}' of type {kind} cannot be .common"
    if space == "sreg":
        yield "special registers cannot be declared"
    if space == "tex":
        yield "'.tex' variables were removed in PTX 1.5; use a .global .texref"
    if scope == "body" and node.linkage:
        yield f"'.{node.linkage}' is for module-scope variables"
    if node.linkage == "common" and space != "global":
        yield f"'{name}' is .common and must be in .global space, not .{space}"
    for attribute in node.attributes:
        if attribute != "managed" and not attribute.startswith("unified("):
            yield f"there is no attribute '.{attribute}' of a variable"
    if kind is None:
        return
    yield from _shape_problems(node, scope)
    if kind.kind == "opaque" and scope not in ("module", "entry", "prototype"):
        yield f"a {kind} must be a module-scope .global variable or a kernel parameter"
    if space == "param" and (node.type == "f16x2" or (scope == "body" and None in node.dims)):
        yield f"'{name}' of type {node.type} cannot be in .param space" if node.type == "f16x2" else f"'{name}' has no size"
    if space != "global" and node.attributes:
        yield f"'{name}' has an attribute, which only .global variables may have"
    if any(text.startswith("unified") for text in node.attributes):
        yield "'.unified' variables are not supported by the assembler"


def _shape_problems(node: ast.Variable, scope: str) -> Iterator[str]:
    name, kind = node.name, TYPES[node.type]
    if node.vector and kind.kind == "pred":
        yield f"the predicate '{name}' cannot be a vector"
    if node.vector and kind.kind == "opaque":
        yield f"'{name}' of type {kind} cannot be a vector"
    if node.vector == 8:
        yield f"'{name}' cannot be a vector of 8 elements"
    if node.vector * kind.bits > MAX_VECTOR_BITS:
        yield f"the vector '{name}' exceeds {MAX_VECTOR_BITS} bits"
    if node.space == "reg" and node.dims:
        yield f"'{name}' is an array and cannot be a register"
    if node.space == "reg" and node.init is not None:
        yield f"'{name}' in .reg space cannot have an initial value"
    sized = isinstance(node.init, ast.InitList) and bool(node.init.items) and node.dims[:1] == (0,)
    if scope == "func" and node.space == "param" and node.dims == (0,):
        return  # as ptxas has it
    if node.linkage != "extern" and any(extent is not None and extent <= 0 for extent in node.dims[sized:]):
        yield f"'{name}' has an extent of {min(extent for extent in node.dims if extent is not None)}"
    if node.ptr is not None and (node.ptr[1] & (node.ptr[1] - 1)):
        yield f"the alignment {max(node.ptr[1], 0)} of '{name}' is not a power of two"
    if node.ptr is not None and (scope not in ("entry", "prototype") or node.ptr[0] in NEVER_POINTED_TO):
        yield "'.ptr' is for kernel parameters that point to global, const, shared or local memory, or to textures and the like"
    if scope in ("entry", "func", "body") and node.vector and node.space == "param":
        yield f"'{name}' in .param space cannot be a vector; use an aligned array"
    if scope == "entry" and None in node.dims:
        yield f"the kernel parameter '{name}' has no size"
    if scope in ("func", "body") and node.space == "param" and node.align > MAX_PARAMETER_ALIGN:
        yield f"the alignment {node.align} of the parameter '{name}' exceeds {MAX_PARAMETER_ALIGN}"
    if scope in ("entry", "func") and node.count is not None:
        yield f"the parameter '{name}' cannot be a range"


def function_problems(node: ast.Function, gates: Gates | None, source: SourceFile) -> Iterator[tuple[str, int, int]]:
    """What is wrong with the head of a function, and where."""
    for index, directive in enumerate(node.directives):
        problem = _directive_problem(node, directive, gates)
        if any(isinstance(value, int) and value >= 1 << 32 for value in directive.values):
            yield f"the value of '.{directive.name}' does not fit 32 bits", directive.pos, directive.end
        elif problem:
            yield problem, *_directive_read(node, index, source)
    given = {directive.name: index for index, directive in enumerate(node.directives)}
    if {"maxntid", "reqntid"} <= set(given):
        yield "'.maxntid' and '.reqntid' exclude each other", node.end - 1, node.end
    if {"reqnctapercluster", "maxclusterrank"} <= set(given):
        second = max(given["reqnctapercluster"], given["maxclusterrank"])
        yield "'.reqnctapercluster' and '.maxclusterrank' exclude each other", *_directive_read(node, second, source)
    if "blocksareclusters" in given and not {"reqntid", "reqnctapercluster"} <= set(given):
        yield "'.blocksareclusters' needs .reqntid and .reqnctapercluster", node.end - 1, node.end
    if [directive.name for directive in node.directives].count("noreturn") > 1:
        last = node.directives[given["noreturn"]]
        yield "'.noreturn' is given twice", last.pos, last.end
    at = node.name_pos or node.pos, (node.name_pos or node.pos) + len(node.name)
    if node.linkage == "common":
        yield "'.common' cannot be given to a function", *at
    if node.linkage == "extern" and node.body is not None:
        yield f"'{node.name}' is .extern and cannot be defined here", node.end - 1, node.end
    if node.name == "_" or is_special(node.name):
        yield f"'{node.name}' is not a name for a function", *at
    if gates is not None:
        yield from _extensions(node)
    if len(node.returns) > 1 and any(item.space != "reg" for item in node.returns):
        yield f"'{node.name}' has several results, which must be .reg", *after_head(node)
    if any(None in item.dims for item in node.returns):
        yield f"the result of '{node.name}' has no size", *at
    if any(None in item.dims for item in node.params[:-1]):
        yield f"only the last parameter of '{node.name}' may have no size", *at


def _directive_read(node: ast.Function, index: int, source: SourceFile) -> tuple[int, int]:
    """Where a directive has been read: at what follows, on another line, if a kernel's might have had another value."""
    directive = node.directives[index]
    if node.kind == "entry" and directive.name in TRIPLE_DIRECTIVES and len(directive.values) < 3:
        following = node.directives[index + 1].pos if index + 1 < len(node.directives) else after_head(node)[0]
        if source.line(following) != source.line(directive.pos):
            return following, following + 1
    return directive.pos, directive.end


def after_head(node: ast.Function) -> tuple[int, int]:
    """Where a function's head has been read: at its body, or the semicolon."""
    pos = node.end - 1 if node.body is None else node.body.pos
    return pos, pos + 1


def _extensions(node: ast.Function) -> Iterator[tuple[str, int, int]]:
    """What ptxas does not take although its meaning is clear."""
    for directive in node.directives:
        if directive.name == "attribute":
            yield "'.unified' functions need the assembler's option to compile only", directive.pos, directive.end
        if directive.name == "pragma" and any(pragma_word(str(text)) in BODY_PRAGMAS for text in directive.values):
            yield "this pragma is for the body of a function", directive.pos, directive.end


def pragma_problem(node: ast.Pragma) -> str | None:
    """What is wrong with a pragma in module scope."""
    for text in node.texts:
        if pragma_word(text) in BODY_PRAGMAS:
            return f"the pragma '{text}' is for the body of a function"
        if text != "nounroll":
            return f"there is no pragma '{text}'"
    return None


def pragma_word(text: str) -> str:
    return text.split(" ", 1)[0]


def is_special(name: str) -> bool:
    """Whether a name is that of a special register."""
    return name[1:] in SPECIAL_REGISTERS or name[1:] in TRIPLES if name.startswith("%") else False


def _directive_problem(node: ast.Function, directive: ast.Directive, gates: Gates | None) -> str | None:
    name = directive.name
    if node.kind == "func" and name not in FUNCTION_DIRECTIVES:
        return f"'.{name}' is for kernels"
    if node.kind == "entry" and name in ("noreturn", "attribute", "abi_preserve", "abi_preserve_control"):
        return f"'.{name}' is for device functions"
    if name == "noreturn" and node.returns:
        return f"'{node.name}' has a result and cannot be .noreturn"
    if name == "maxnctapersm":
        return "'.maxnctapersm' was removed in PTX 2.1; use .minnctapersm"
    if name in POSITIVE and any(isinstance(value, int) and value <= 0 for value in directive.values):
        return f"'.{name}' needs positive values"
    if gates is not None and name in DIRECTIVE_NEEDS:
        (major, minor), sm = DIRECTIVE_NEEDS[name]
        if gates[0] < (major, minor) or gates[1] < sm:
            return f"'.{name}' needs PTX {major}.{minor} and sm_{sm}"
    return None

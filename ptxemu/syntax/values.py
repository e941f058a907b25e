"""The productions of values: initialisers, operands and constant expressions; part of :mod:`ptxemu.syntax.grammar`."""

from __future__ import annotations

from typing import Any

from ptxemu.syntax import declarations as declare
from ptxemu.syntax import expressions as build
from ptxemu.syntax.ast import Float, Init, InitList, Int, Name, Pair
from ptxemu.syntax.literals import float_bits, integer_value, is_representable, string_value

Rule = Any  # ply.yacc.YaccProduction, which is untyped

# ---------------------------------------------------------------- initialisers


def p_initializer(p: Rule) -> None:
    """initializer : scalar
    | '{' '}'
    | '{' fields '}'"""
    p[0] = p[1] if len(p) == 2 else InitList(tuple(p[2]) if len(p) == 4 else (), p.lexpos(1), p.lexpos(len(p) - 1) + 1)


def p_fields(p: Rule) -> None:
    """fields : field
    | fields ',' field"""
    p[0] = extended(p)


def p_field(p: Rule) -> None:
    """field : initializer
    | INTEGERS field"""
    p[0] = [p[1]] if len(p) == 2 else p[1] + p[2]


def p_field_named(p: Rule) -> None:
    """field : NAME '=' scalar"""
    value = p[3]
    p[0] = [Init(value.value, value.generic, value.mask, p[1], p.lexpos(1), value.end)]


def p_scalar(p: Rule) -> None:
    """scalar : expression
    | generic"""
    p[0] = p[1] if isinstance(p[1], Init) else build.initial(p.lexer, p[1])


def p_scalar_mask(p: Rule) -> None:
    """scalar : INTEGER '(' expression ')'
    | INTEGER '(' generic ')'"""
    inner = p[3] if isinstance(p[3], Init) else build.initial(p.lexer, p[3])
    p[0] = Init(inner.value, inner.generic, integer_value(p[1]), None, p.lexpos(1), p.lexpos(4) + 1)


def p_generic(p: Rule) -> None:
    """generic : NAME '(' expression ')'
    | generic '+' expression
    | generic '-' expression"""
    if len(p) == 5:
        p[0] = declare.generic(p.lexer, word(p, 1), p[3], p.lexpos(4) + 1)
    else:
        offset = build.integer(p.lexer, p[3])
        if p[2] == "-":
            p.lexer.extension("write '+-': an address takes a constant after '+' only", p.lexpos(2), p.lexpos(2) + 1)
        p[0] = declare.displaced(p[1], offset if p[2] == "+" else -offset, p[3].end)


# ---------------------------------------------------------------- operands


def p_operand(p: Rule) -> None:
    """operand : element
    | address"""
    p[0] = p[1]


def p_operand_pair(p: Rule) -> None:
    """operand : vector '|' NAME"""
    predicate = build.name(p.lexer, p[3], p.lexpos(3))
    p[0] = Pair(p[1], predicate, p[1].pos, predicate.end)


def p_element(p: Rule) -> None:
    """element : expression
    | vector"""
    p[0] = p[1]


def p_vector(p: Rule) -> None:
    """vector : '{' expressions '}'"""
    p[0] = build.vector(p.lexer, p[2], p.lexpos(1), p.lexpos(3) + 1)


def p_address(p: Rule) -> None:
    """address : '[' expression rest ']'"""
    p[0] = build.address(p.lexer, p[2], p[3], p.lexpos(1), p.lexpos(4) + 1)


def p_rest(p: Rule) -> None:
    """rest :
    | rest ',' element"""
    p[0] = appended(p)


def p_expressions(p: Rule) -> None:
    """expressions : expression
    | expressions ',' expression"""
    p[0] = listed(p)


def p_expression_name(p: Rule) -> None:
    """expression : NAME"""
    p[0] = build.name(p.lexer, p[1], p.lexpos(1))


def p_expression_integer(p: Rule) -> None:
    """expression : INTEGER"""
    p[0] = Int(integer_value(p[1]), p[1][-1] == "U", p.lexpos(1), p.lexpos(1) + len(p[1]))


def p_expression_float(p: Rule) -> None:
    """expression : FLOAT"""
    pos, end = p.lexpos(1), p.lexpos(1) + len(p[1])
    if not is_representable(p[1]):
        p.lexer.error(f"'{p[1][:40]}' is out of the range of .f64", pos, end)
    p[0] = Float(*float_bits(p[1]), pos, end)


def p_expression_group(p: Rule) -> None:
    """expression : '(' ')'
    | '(' expressions ')'"""
    p[0] = build.group(p.lexer, p[2] if len(p) == 4 else [], p.lexpos(1), p.lexpos(len(p) - 1) + 1)


def p_expression_cast(p: Rule) -> None:
    """expression : '(' TYPE ')' expression %prec UNARY"""
    p[0] = build.cast(p.lexer, p[2], p[4], p.lexpos(1))


def p_expression_index(p: Rule) -> None:
    """expression : NAME '[' expression ']'"""
    p[0] = build.subscript(p.lexer, build.name(p.lexer, p[1], p.lexpos(1)), p[3], p.lexpos(4) + 1)


def p_expression_unary(p: Rule) -> None:
    """expression : '-' expression %prec UNARY
    | '+' expression %prec UNARY
    | '!' expression %prec UNARY
    | '~' expression %prec UNARY"""
    p[0] = build.unary(p.lexer, p[1], p[2], p.lexpos(1))


def p_expression_binary(p: Rule) -> None:
    """expression : expression '+' expression
    | expression '-' expression
    | expression '*' expression
    | expression '/' expression
    | expression '%' expression
    | expression '&' expression
    | expression '|' expression
    | expression '^' expression
    | expression '<' expression
    | expression '>' expression
    | expression SHIFT expression
    | expression RELATION expression
    | expression EQUALITY expression
    | expression AND expression
    | expression OR expression"""
    p[0] = build.binary(p.lexer, p[1], p[2], p[3])


def p_expression_choice(p: Rule) -> None:
    """expression : expression '?' expression ':' expression"""
    p[0] = build.choose(p.lexer, p[1], p[3], p[5])


# ---------------------------------------------------------------- lists


def p_constant(p: Rule) -> None:
    """constant : expression"""
    p[0] = build.integer(p.lexer, p[1])


def p_constants(p: Rule) -> None:
    """constants : expression
    | constants ',' expression"""
    values, value = (p[1][0], p[3]) if len(p) == 4 else ([], p[1])
    values.append(build.integer(p.lexer, value))
    p[0] = (values, value.end)


def p_integers(p: Rule) -> None:
    """integers : INTEGER
    | integers ',' INTEGER"""
    values = p[1][0] if len(p) == 4 else []
    last = len(p) - 1
    values.append(integer_value(p[last]))
    p[0] = (values, p.lexpos(last) + len(p[last]))


def p_names(p: Rule) -> None:
    """names : NAME
    | names ',' NAME"""
    p[0] = p[1] if len(p) == 4 else []
    p[0].append(word(p, len(p) - 1))


def p_targets(p: Rule) -> None:
    """targets : target
    | targets ',' target"""
    p[0] = extended(p)


def p_target(p: Rule) -> None:
    """target : NAME
    | NAME '<' INTEGER '>'"""
    p[0] = [word(p, 1)] if len(p) == 2 else declare.numbered(p.lexer, word(p, 1), integer_value(p[3]))


def p_strings(p: Rule) -> None:
    """strings : STRING
    | strings ',' STRING"""
    p[0] = p[1] if len(p) == 4 else []
    p[0].append(string_value(p[len(p) - 1]))


# ---------------------------------------------------------------- helpers


def word(p: Rule, index: int) -> Name:
    pos = p.lexpos(index)
    return Name(p[index], pos, pos + len(p[index]))


def listed(p: Rule) -> list[Any]:
    """The list of ``x : | item | x ',' item``."""
    if len(p) == 1:
        return []
    if len(p) == 2:
        return [p[1]]
    items: list[Any] = p[1]
    items.append(p[3])
    return items


def extended(p: Rule) -> list[Any]:
    """As :func:`listed`, where an item is itself a list."""
    if len(p) < 4:
        return p[1] if len(p) == 2 else []
    items: list[Any] = p[1]
    items.extend(p[3])
    return items


def appended(p: Rule) -> list[Any]:
    """The list of ``x : | x item`` or ``x : | x ',' item``."""
    if len(p) == 1:
        return []
    items: list[Any] = p[1]
    items.append(p[len(p) - 1])
    return items

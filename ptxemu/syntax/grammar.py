"""The PLY grammar of PTX: the authority on what parses (PTX ISA, "Syntax" and "Directives").

Opcodes are not keywords: an instruction is ``guard? opcode(.modifier)* operands ;`` and means nothing here.
Productions are the docstrings; ``p.lexer`` is the :class:`~ptxemu.syntax.stream.TokenStream`.
"""

from __future__ import annotations

from ptxemu.syntax import declarations as declare
from ptxemu.syntax import expressions as build
from ptxemu.syntax.ast import Alias, Block, Directive, Instruction, Label, Pragma, TargetList
from ptxemu.syntax.literals import integer_value, string_value
from ptxemu.syntax.scanner import PARAMETER
from ptxemu.syntax.symbols import precedence, start, tokens  # noqa: F401  (read by PLY)
from ptxemu.syntax.values import *  # noqa: F403  (its productions)
from ptxemu.syntax.values import Rule, appended, extended, listed, word

# ---------------------------------------------------------------- module


def p_module(p: Rule) -> None:
    """module : items"""


def p_items(p: Rule) -> None:
    """items :
    | items item"""


def p_item_version(p: Rule) -> None:
    """item : VERSION FLOAT
    | VERSION INTEGER"""
    p.lexer.header.version(p[2], p.lexpos(1), p.lexpos(2), p.lexpos(2) + len(p[2]))


def p_item_target(p: Rule) -> None:
    """item : TARGET names"""
    p.lexer.header.target([word.text for word in p[2]], p.lexpos(1))


def p_item_address_size(p: Rule) -> None:
    """item : ADDRESS_SIZE INTEGER"""
    p.lexer.header.address_size(integer_value(p[2]), p.lexpos(1), p.lexpos(2), p.lexpos(2) + len(p[2]))


def p_item_list(p: Rule) -> None:
    """item : declaration ';'
    | pragma"""
    p.lexer.module.items.extend(p[1])


def p_item_one(p: Rule) -> None:
    """item : function
    | alias"""
    p.lexer.module.items.append(p[1])


def p_item_other(p: Rule) -> None:
    """item : file
    | error RESYNC"""
    if len(p) == 3:
        p.parser.errok()


def p_alias(p: Rule) -> None:
    """alias : ALIAS NAME ',' NAME ';'"""
    p[0] = Alias(word(p, 2), word(p, 4), p.lexpos(1), p.lexpos(5) + 1)


def p_file(p: Rule) -> None:
    """file : FILE INTEGER STRING
    | FILE INTEGER STRING ',' INTEGER
    | FILE INTEGER STRING ',' INTEGER ',' INTEGER"""
    end = p.lexpos(1) if len(p) == 8 else p.lexpos(len(p) - 1) + len(p[len(p) - 1])
    declare.file(p.lexer, integer_value(p[2]), string_value(p[3]), p.lexpos(1), end)


def p_pragma(p: Rule) -> None:
    """pragma : PRAGMA strings ';'"""
    p[0] = [Pragma(tuple(p[2]), p.lexpos(1), p.lexpos(3) + 1)]


# ---------------------------------------------------------------- functions


def p_function(p: Rule) -> None:
    """function : entry body
    | device_function body
    | device_function"""
    p[0] = declare.function(p.lexer, p[1], p[2] if len(p) == 3 else (None, p[1].end))


def p_header(p: Rule) -> None:
    """device_function : linkage FUNC attributes returns NAME accepts directives %prec HEADER"""
    name = word(p, 5)
    p[0] = declare.FunctionHeader(p[1], p[2][1:], p.lexpos(2), p[3], p[4], name, p[6], p[7], name.pos + len(name.text))


def p_entry(p: Rule) -> None:
    """entry : linkage ENTRY attributes NAME accepts directives"""
    name = word(p, 4)
    p[0] = declare.FunctionHeader(p[1], p[2][1:], p.lexpos(2), p[3], [], name, p[5], p[6], name.pos + len(name.text))


def p_linkage(p: Rule) -> None:
    """linkage :
    | LINKAGE"""
    p[0] = (p[1][1:], p.lexpos(1)) if len(p) == 2 else ("", None)


def p_signature(p: Rule) -> None:
    """returns :
    | '(' ')'
    | '(' parameter_list ')'
    accepts :
    | '(' ')'
    | '(' parameter_list ')'"""
    p[0] = p[2] if len(p) == 4 else []


def p_parameter_list(p: Rule) -> None:
    """parameter_list : parameters
    | parameter_list ',' parameters"""
    p[0] = extended(p)


def p_parameters(p: Rule) -> None:
    """parameters : PARAMETERS"""
    p[0] = p[1]


def p_parameters_one(p: Rule) -> None:
    """parameters : leading SPACE specs TYPE pointer declarator"""
    parameter = declare.variable(p.lexer, "", p[2], [*p[1], *p[3]], p[4], p[5], p[6], None)
    declare.one_dimension(p.lexer, parameter)
    p[0] = [parameter]
    p.lexer.learn(parameter, p.lexpos(2), parameter.end, PARAMETER)


def p_parameters_spaceless(p: Rule) -> None:
    """parameters : leading TYPE pointer declarator"""
    declare.parameter_without_space(p.lexer, p[4])
    p[0] = [declare.variable(p.lexer, "", ".param", p[1], p[2], p[3], p[4], None)]


def p_pointer(p: Rule) -> None:
    """pointer :
    | PTR
    | PTR SPACE
    | PTR TYPE
    | PTR ALIGN constant
    | PTR SPACE ALIGN constant
    | PTR TYPE ALIGN constant"""
    if len(p) > 1:
        p[0] = (p[2][1:] if len(p) in (3, 5) else "", (p[len(p) - 1] or declare.EXPLICIT_ZERO) if len(p) > 3 else 0)


def p_directives(p: Rule) -> None:
    """directives :
    | directives directive"""
    p[0] = appended(p)


def p_directive(p: Rule) -> None:
    """directive : TUNING
    | TUNING integers"""
    values, end = p[2] if len(p) == 3 else ([], p.lexpos(1) + len(p[1]))
    p[0] = declare.tuning(p.lexer, p[1][1:], values, p.lexpos(1), end)


def p_directive_pragma(p: Rule) -> None:
    """directive : PRAGMA strings ';'"""
    p[0] = Directive("pragma", tuple(p[2]), p.lexpos(1), p.lexpos(3) + 1)


def p_body(p: Rule) -> None:
    """body : block
    | ';'"""
    p[0] = (p[1], p[1].end) if isinstance(p[1], Block) else (None, p.lexpos(1) + 1)


# ---------------------------------------------------------------- declarations


def p_declaration(p: Rule) -> None:
    """declaration : linkage leading SPACE specs TYPE
    | linkage leading SPACE specs TYPE variables"""
    items = p[6] if len(p) == 7 else declare.nothing(p.lexer, p[5], p.lexpos(5))
    p[0] = [declare.variable(p.lexer, p[1][0], p[3], [*p[2], *p[4]], p[5], None, *item) for item in items]
    p.set_lexpos(0, p.lexpos(3))


def p_declaration_spaceless(p: Rule) -> None:
    """declaration : linkage leading TYPE
    | linkage leading TYPE variables"""
    if len(p) == 4:
        declare.nothing(p.lexer, p[3], p.lexpos(3))
    else:
        declare.without_space(p.lexer, [declarator for declarator, _ in p[4]])
    p[0] = []


def p_leading(p: Rule) -> None:
    """leading :
    | leading ALIGN constant
    | leading attribute"""
    p[0] = appended(p)


def p_specs(p: Rule) -> None:
    """specs :
    | specs spec"""
    p[0] = appended(p)


def p_spec(p: Rule) -> None:
    """spec : ALIGN constant
    | VECTOR
    | attribute"""
    p[0] = p[len(p) - 1]


def p_attributes(p: Rule) -> None:
    """attributes :
    | attributes attribute"""
    p[0] = appended(p)


def p_attribute(p: Rule) -> None:
    """attribute : ATTRIBUTE '(' attribute_list ')'"""
    p[0] = (p[3], p.lexpos(1), p.lexpos(4) + 1)


def p_attribute_list(p: Rule) -> None:
    """attribute_list : attribute_item
    | attribute_list ',' attribute_item"""
    p[0] = listed(p)


def p_attribute_item(p: Rule) -> None:
    """attribute_item : MODIFIER
    | MODIFIER '(' constants ')'"""
    arguments = f"({', '.join(map(str, p[3][0]))})" if len(p) > 2 else ""
    p[0] = p[1][1:] + arguments


def p_variables(p: Rule) -> None:
    """variables : variable
    | variables ',' variable"""
    p[0] = listed(p)


def p_variable(p: Rule) -> None:
    """variable : declarator
    | declarator '=' initializer"""
    p[0] = (p[1], p[3] if len(p) == 4 else None)


def p_declarator(p: Rule) -> None:
    """declarator : NAME dims
    | NAME '<' INTEGER '>'"""
    if len(p) == 3:
        dims, end = p[2]
        p[0] = (p[1], p.lexpos(1), end or p.lexpos(1) + len(p[1]), tuple(dims), None)
    else:
        p[0] = (p[1], p.lexpos(1), p.lexpos(4) + 1, (), integer_value(p[3]))


def p_dims(p: Rule) -> None:
    """dims :
    | dims '[' ']'
    | dims '[' expression ']'"""
    if len(p) == 1:
        p[0] = ([], 0)
    else:
        dims = p[1][0]
        dims.append(build.integer(p.lexer, p[3]) if len(p) == 5 else None)
        p[0] = (dims, p.lexpos(len(p) - 1) + 1)


# ---------------------------------------------------------------- statements


def p_block(p: Rule) -> None:
    """block : '{' statements '}'"""
    p[0] = Block(p[2], p.lexpos(1), p.lexpos(3) + 1)


def p_statements(p: Rule) -> None:
    """statements :
    | statements statement"""
    if len(p) == 1:
        p[0] = []
    else:
        p[0] = p[1]
        p[0].extend(p[2])


def p_statement(p: Rule) -> None:
    """statement : RUN
    | pragma"""
    p[0] = p[1]


def p_statement_declaration(p: Rule) -> None:
    """statement : declaration ';'"""
    p[0] = p[1]
    if len(p[1]) == 1:
        p.lexer.learn(p[1][0], p.lexpos(1), p.lexpos(2))


def p_statement_one(p: Rule) -> None:
    """statement : instruction
    | label
    | block"""
    p[0] = [p[1]]


def p_statement_nothing(p: Rule) -> None:
    """statement : file
    | error RESYNC"""
    if len(p) == 3:
        p.parser.errok()
    p[0] = []


def p_label(p: Rule) -> None:
    """label : NAME ':'"""
    p[0] = Label(p[1], p.lexpos(1), p.lexpos(1) + len(p[1]))
    declare.plain_name(p.lexer, word(p, 1), "label")


def p_statement_targets(p: Rule) -> None:
    """statement : NAME ':' BRANCHTARGETS targets ';'
    | NAME ':' CALLTARGETS names ';'"""
    p[0] = [TargetList(p[1], p[3][1:], tuple(p[4]), p.lexpos(1), p.lexpos(5) + 1)]
    declare.plain_name(p.lexer, word(p, 1), "label")


def p_statement_prototype(p: Rule) -> None:
    """statement : NAME ':' CALLPROTOTYPE returns NAME accepts directives ';'"""
    declare.plain_name(p.lexer, word(p, 1), "label")
    p[0] = [declare.prototype(p.lexer, word(p, 1), p[4], word(p, 5), p[6], p[7], p.lexpos(8) + 1)]


def p_instruction(p: Rule) -> None:
    """instruction : opcode arguments ';'
    | guard opcode arguments ';'"""
    last = len(p) - 1
    (opcode, *modifiers), opcode_pos, opcode_end = p[last - 2]
    guard, pos = p[1] if last == 4 else (None, opcode_pos)
    operands = build.operands(p.lexer, opcode, p[last - 1])
    end, loc = p.lexpos(last) + 1, p.lexer.location_at(pos)
    p[0] = Instruction(opcode, tuple(modifiers), operands, guard, pos, end, opcode_pos, opcode_end, loc)
    p.lexer.learn(p[0], pos, end - 1)


def p_guard(p: Rule) -> None:
    """guard : '@' NAME
    | '@' '!' NAME"""
    register = word(p, len(p) - 1)
    declare.plain_name(p.lexer, register, "predicate")
    p[0] = ((register, len(p) == 4), p.lexpos(1))


def p_opcode(p: Rule) -> None:
    """opcode : NAME
    | opcode modifier"""
    if len(p) == 2:
        p[0] = (p[1].split("."), p.lexpos(1), p.lexpos(1) + len(p[1]))
    else:
        words, pos, _ = p[1]
        word, end = p[2]
        words.append(word)
        p[0] = (words, pos, end)


def p_modifier(p: Rule) -> None:
    """modifier : MODIFIER
    | SPACE
    | TYPE
    | VECTOR
    | ALIGN
    | LINKAGE"""
    p[0] = (p[1][1:], p.lexpos(1) + len(p[1]))


def p_arguments(p: Rule) -> None:
    """arguments :
    | arguments_list"""
    p[0] = p[1] if len(p) == 2 else []


def p_arguments_list(p: Rule) -> None:
    """arguments_list : operand
    | arguments_list ',' operand"""
    p[0] = listed(p)

"""What is to be known of an opcode beyond its rows: above all how its operands are judged, as measured with ptxas.

=====================  ===================================================================================
``relaxed``            registers may be wider than the instruction type
``element``            an element of an array stands for its address
``integer``            results are integer registers, whatever type is written
``kept``               the first result cannot be ``_`` beside a second one
``fragments``          vectors are fragments of matrices, whose typed elements agree
``packed``             a vector without the modifier that says so is an instruction that is not supported
``moves``              copies a value of any kind: packs and unpacks vectors, takes addresses of functions
``specials``           reads special registers
``symbols``            takes the name of a variable as its address
``shared``             of a variable in shared memory
``converts``           of a variable in the space that is written
``functionless``       operands cannot be functions
``sized``              the width of a sum counts; ``sized:3`` in operand 3, counted from 0
``unsized:3``          it does not in operand 3, although that has always the same type
``unsized:pred``       nor where the operand is a predicate
``count:2``            the width of a sum counts in operand 2, not that of a function
``composed``           ptxas writes it in terms of others, which take no sums and functions; ``composed:64`` long integers
``address64``          no addresses of 8 or 16 bits
``short``              addresses of 32 bits are not supported
``named``              generic addresses of variables are of spaces that could be named
``opaque:texref``      ptxas takes the address of a variable of that type
``literal``            a literal can be an address
``base:a``             the result may be an address near to that in operand a
``masked``             of a vector of 256 bits ``_`` leaves out an element
``numbers``            operands and results are numbers, where others only look at bits
``steps``              it makes a new value of an operand, rather than keep or replace it: repeated, it counts
``selects``            the result is one of the first two operands, as the third says
``assembles``          each operand may fill a part of the result
``system``             reductions without a scope are of the system's
``absorbs:0``          of predicates: if one is 0, it does not matter what the other is; ``absorbs:1``
=====================  ===================================================================================
"""

from __future__ import annotations

from collections import defaultdict

TRAITS: defaultdict[str, set[str]] = defaultdict(set)
NAME_WORDS: defaultdict[str, set[str]] = defaultdict(set)
NONE: frozenset[str] = frozenset()


def traits(words: str, *opcodes: str) -> None:
    """State traits of opcodes."""
    for opcode in opcodes:
        TRAITS[opcode].update(words.split())


def name_words(words: str, *opcodes: str) -> None:
    """State modifiers that are part of an opcode's name: they follow it directly, in the order of the row."""
    for opcode in opcodes:
        NAME_WORDS[opcode].update(words.split())


def traits_of(opcode: str) -> set[str] | frozenset[str]:
    return TRAITS.get(opcode, NONE)


def name_words_of(opcode: str) -> set[str] | frozenset[str]:
    return NAME_WORDS.get(opcode, NONE)

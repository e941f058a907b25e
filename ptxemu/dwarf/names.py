"""Numbers of tags, attributes, encodings and operations: those that are read here (dwarfstd.org, version 5, section 7)."""

from __future__ import annotations

from enum import IntEnum


class Tag(IntEnum):
    ARRAY_TYPE = 0x01
    CLASS_TYPE = 0x02
    ENUMERATION_TYPE = 0x04
    FORMAL_PARAMETER = 0x05
    LEXICAL_BLOCK = 0x0B
    MEMBER = 0x0D
    POINTER_TYPE = 0x0F
    REFERENCE_TYPE = 0x10
    COMPILE_UNIT = 0x11
    STRUCTURE_TYPE = 0x13
    SUBROUTINE_TYPE = 0x15
    TYPEDEF = 0x16
    UNION_TYPE = 0x17
    INHERITANCE = 0x1C
    INLINED_SUBROUTINE = 0x1D
    SUBRANGE_TYPE = 0x21
    BASE_TYPE = 0x24
    CONST_TYPE = 0x26
    ENUMERATOR = 0x28
    SUBPROGRAM = 0x2E
    VARIABLE = 0x34
    VOLATILE_TYPE = 0x35
    RESTRICT_TYPE = 0x37
    NAMESPACE = 0x39
    UNSPECIFIED_TYPE = 0x3B
    RVALUE_REFERENCE_TYPE = 0x42
    ATOMIC_TYPE = 0x47


class At(IntEnum):
    LOCATION = 0x02
    NAME = 0x03
    BYTE_SIZE = 0x0B
    BIT_SIZE = 0x0D
    BIT_OFFSET = 0x0C
    LOW_PC = 0x11
    HIGH_PC = 0x12
    CONST_VALUE = 0x1C
    UPPER_BOUND = 0x2F
    ABSTRACT_ORIGIN = 0x31
    COUNT = 0x37
    DATA_MEMBER_LOCATION = 0x38
    ENCODING = 0x3E
    EXTERNAL = 0x3F
    FRAME_BASE = 0x40
    SPECIFICATION = 0x47
    TYPE = 0x49
    RANGES = 0x55
    DATA_BIT_OFFSET = 0x6B


class Encoding(IntEnum):
    BOOLEAN = 0x02
    FLOAT = 0x04
    SIGNED = 0x05
    SIGNED_CHAR = 0x06
    UNSIGNED = 0x07
    UNSIGNED_CHAR = 0x08
    UTF = 0x10


class Op(IntEnum):
    ADDR = 0x03
    DEREF = 0x06
    CONST1U = 0x08
    CONST1S = 0x09
    CONST2U = 0x0A
    CONST2S = 0x0B
    CONST4U = 0x0C
    CONST4S = 0x0D
    CONST8U = 0x0E
    CONST8S = 0x0F
    CONSTU = 0x10
    CONSTS = 0x11
    MINUS = 0x1C
    PLUS = 0x22
    PLUS_UCONST = 0x23
    LIT0 = 0x30
    LIT31 = 0x4F
    REGX = 0x90
    FBREG = 0x91
    BREGX = 0x92
    NOP = 0x96
    IMPLICIT_VALUE = 0x9E
    STACK_VALUE = 0x9F

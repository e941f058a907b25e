"""What the words must be by the notes of each miscompile, by its number and their places.

Of SemiAnalysisAI/FuzzX, https://github.com/SemiAnalysisAI/FuzzX.
"""

from __future__ import annotations

WORDS: dict[int, dict[int, int]] = {
    1: {0: 0x0, 1: 0x0}, 2: {0: 0xfffffffe}, 3: {0: 0x0}, 4: {0: 0xffffffe0}, 5: {0: 0xff}, 6: {0: 0x4a60, 4: 0x4a1b},
    7: {0: 0x179, 2: 0xe4ca6123}, 8: {0: 0x931c20}, 9: {0: 0x80000001}, 10: {0: 0x7b}, 11: {0: 0x80000000},
    12: {0: 0x800001af}, 13: {0: 0x0}, 14: {16: 0xfc}, 15: {0: 0x3fe1}, 16: {0: 0x1}, 17: {0: 0x40}, 18: {0: 0x1fa},
    19: {0: 0x1, 8: 0x3, 124: 0x1f}, 20: {0: 0x318}, 21: {0: 0xacd528}, 22: {0: 0xfffffff}, 23: {0: 0xffffffa5},
    24: {0: 0xff}, 25: {0: 0x0}, 26: {0: 0x1}, 27: {0: 0xefffffe1}, 28: {0: 0xaaaacaaa}, 29: {0: 0x3ff7}, 30: {0: 0x0},
    31: {0: 0x80000002}, 32: {0: 0x2}, 33: {83: 0x6fcc5658}, 34: {3: 0xffffffdf}, 35: {2: 0x0, 18: 0x4},
    36: {1: 0x80000092}, 37: {2: 0x316}, 38: {3: 0x0}, 39: {0: 0xffff01a3}, 40: {4: 0x8000}, 41: {0: 0xd7cc},
    42: {9: 0xf4f2e7e8}, 43: {3: 0x800000}, 44: {1: 0x0, 5: 0x0}, 45: {0: 0x8000001f}, 46: {0: 0x0, 4: 0x0}, 47: {0: 0x1b},
    48: {0: 0x21, 8: 0x23}, 49: {1: 0x853f9877}, 50: {4: 0x34b744}, 51: {9: 0xe495723f}, 52: {0: 0x0}, 53: {1: 0x83c},
    54: {0: 0x847df91e}, 55: {75: 0xffffffdf}, 56: {1: 0x5c}, 57: {0: 0x0}, 58: {0: 0x857a7008, 4: 0x23b1e9c1},
    59: {0: 0x5cd66325, 4: 0xcfd48c8}, 60: {56: 0xffff8000, 57: 0x59d90000}, 61: {1: 0x1, 5: 0x1},
    62: {0: 0x57, 1: 0x8877, 2: 0x4000000, 3: 0x1405}, 64: {0: 0x0, 4: 0x0}, 65: {2: 0x1d}, 66: {0: 0x100},
    67: {0: 0x6655, 1: 0x6655}, 68: {0: 0x6655, 3: 0x3e655}, 69: {4: 0xfffffff1, 8: 0xfffffff2},
    70: {0: 0x60fa173a, 16: 0x60fa173e}, 71: {6: 0xffffffe0}, 72: {3: 0x9a89}, 73: {1: 0x2b0c}, 74: {0: 0x14},
    75: {96: 0x374, 116: 0x57}, 76: {1: 0xfffffffe, 5: 0xfffffffc}, 77: {6: 0x32}, 79: {79: 0x43}, 80: {2: 0xefeafaea},
    81: {4: 0x40001}, 82: {2: 0xfffffffc, 6: 0xfffffffd}, 85: {1: 0xffffffff},
}  # fmt: skip

UNSTATED = frozenset({63, 78})
"""An approximation that may be on either side of 2, and a recurrence whose words are not in the notes."""
CRASHES = frozenset({83, 84, 86})
"""The assembler crashes. Two of these kernels go on with an address that nothing has set."""
UNDEFINED = frozenset({87})
"""Its word follows from registers that nothing has set."""

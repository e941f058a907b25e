"""How accesses of a warp become sectors of 32 bytes, and wavefronts through 32 banks of 4 bytes.

The model is that of NVIDIA's documents (CUDA C++ best practices guide, "Coalesced Access to Global Memory" and "Shared Memory and
Memory Banks"): a request is one instruction of a warp; accesses of 8 and 16 bytes go through the banks by halves and quarters of
the warp.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

SECTOR, BANKS, BANK = 32, 32, 4  # bytes, number, bytes
ROW = BANKS * BANK
WIDEST = 16  # bytes that one thread moves in an instruction; more is a bulk copy


class Traffic(Struct):
    """Of one instruction in one space. ``bytes`` are different ones that threads ask for; ``ideal`` the sectors that would hold
    them; ``least`` the wavefronts without conflicts."""

    requests: int = 0
    bytes: int = 0
    sectors: int = 0
    ideal: int = 0
    wavefronts: int = 0
    least: int = 0


def sectors_of(addresses: Iterable[int], size: int) -> set[int]:
    """The numbers of the sectors that accesses touch."""
    return {sector for address in addresses for sector in range(address // SECTOR, (address + size - 1) // SECTOR + 1)}


def ideal_sectors(addresses: Iterable[int], size: int) -> int:
    """The fewest sectors that hold as many different bytes."""
    return -(-different_bytes(addresses, size) // SECTOR)


def different_bytes(addresses: Iterable[int], size: int) -> int:
    """How many accesses touch; those that several do count once."""
    end = count = 0
    for address in sorted(set(addresses)):
        count += max(0, address + size - max(address, end))
        end = max(end, address + size)
    return count


def wavefronts_of(lanes: Sequence[int], addresses: Sequence[int], size: int) -> tuple[int, int]:
    """How often shared memory is accessed for an instruction, and how often without bank conflicts.

    Threads that access the same word of 4 bytes take no more time than one.
    """
    if size > WIDEST:
        rows = sum(-(-size // ROW) for _ in addresses)
        return rows, rows
    together = BANKS // max(1, size // BANK)  # lanes that go through the banks at once
    parts: dict[int, set[int]] = {}
    for lane, address in zip(lanes, addresses, strict=True):
        parts.setdefault(lane // together, set()).update(range(address // BANK, (address + size - 1) // BANK + 1))
    return sum(map(_most_in_a_bank, parts.values())), len(parts)


def _most_in_a_bank(words: set[int]) -> int:
    counts = [0] * BANKS
    for word in words:
        counts[word % BANKS] += 1
    return max(counts)


def local_sectors(lanes: Sequence[int], offsets: Sequence[int], size: int) -> int:
    """Of local memory, where word ``i`` of all threads of a warp lies together: sectors of 8 threads' words."""
    found: set[tuple[int, int]] = set()
    for lane, offset in zip(lanes, offsets, strict=True):
        found |= {(word, lane // (SECTOR // BANK)) for word in range(offset // BANK, (offset + size - 1) // BANK + 1)}
    return len(found)

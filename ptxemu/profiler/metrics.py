"""Counts as metrics, by the names that Nsight Compute has for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ptxemu.ir.ops import Op
from ptxemu.isa.work import ATOMIC, OPERATIONS_OF, class_of, float_operation, matrix_operations
from ptxemu.profiler.counters import Counts

INSTRUCTIONS = "smsp__inst_executed.sum"
THREADS = "smsp__thread_inst_executed.sum"
ACTIVE = "smsp__thread_inst_executed_pred_on.sum"
BRANCHES = "smsp__sass_branch_targets.sum"
DIVERGENT = "smsp__sass_branch_targets_threads_divergent.sum"
UNIFORM = "smsp__sass_branch_targets_threads_uniform.sum"
UNIFORM_PERCENT = "smsp__sass_average_branch_targets_threads_uniform.pct"
PER_INSTRUCTION = "smsp__thread_inst_executed_per_inst_executed.ratio"
MATRIX_OPERATIONS = "sm__ops_path_tensor.sum"
ATOMIC_PASSES = "ptxemu__atomic_passes.sum"
ATOMICS = "ptxemu__atomics.sum"
EXCESSIVE = "derived__memory_l1_sectors_global_excessive"
IDEAL = "derived__memory_l1_sectors_global_ideal"
FIRST_TOUCHED = "ptxemu__sectors_touched.sum"

OPERATION = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_{}_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
SECTORS_PER_REQUEST = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_{}_op_{}.ratio"
BYTES_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_{}_op_{}.ratio"
BYTES = "smsp__sass_data_bytes_mem_{}_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
SHARED_ACCESSES = "smsp__inst_executed_op_shared_{}.sum"
CACHED = ("global", "local")
KINDS = ("ld", "st", "atom", "red")
PRECISIONS = {"f": "fp32", "d": "fp64", "h": "fp16"}


def contributions(op: Op, counts: Counts) -> Counter[str]:
    """What an instruction adds to the sums."""
    found = Counter({INSTRUCTIONS: counts.executed, THREADS: counts.threads, ACTIVE: counts.active})
    if op.labels:
        found[BRANCHES] = counts.executed + counts.divergent
        found[DIVERGENT], found[UNIFORM] = counts.divergent, counts.executed - counts.divergent
    if operation := float_operation(op):
        found[OPERATION.format(operation[0])] = counts.active * operation[1]
    found[MATRIX_OPERATIONS] = counts.executed * matrix_operations(op)
    if class_of(op) == ATOMIC:
        found[ATOMICS], found[ATOMIC_PASSES] = counts.executed, counts.passes
    for (space, kind), traffic in counts.traffic.items():
        if space in CACHED:
            found[REQUESTS.format(space, kind)] += traffic.requests
            found[SECTORS.format(space, kind)] += traffic.sectors
            found[BYTES.format(space, kind)] += traffic.bytes
        if space == "global":
            found[IDEAL] += traffic.ideal
            found[EXCESSIVE] += traffic.sectors - traffic.ideal
        if space == "shared":
            found[SHARED_ACCESSES.format(kind)] += traffic.requests
            found[BYTES.format(space, kind)] += traffic.bytes
            found[WAVEFRONTS.format(kind)] += traffic.wavefronts
            found[CONFLICTS.format(kind)] += traffic.wavefronts - traffic.least
    return +found


def total(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return found


def derived(sums: Mapping[str, int]) -> dict[str, float]:
    """Ratios of the sums, those whose denominator is not 0."""
    pairs = {PER_INSTRUCTION: (sums.get(THREADS, 0), sums.get(INSTRUCTIONS, 0))}
    branches = sums.get(UNIFORM, 0) + sums.get(DIVERGENT, 0)
    pairs[UNIFORM_PERCENT] = (100 * sums.get(UNIFORM, 0), branches)
    for space in CACHED:
        for kind in KINDS:
            sectors = sums.get(SECTORS.format(space, kind), 0)
            pairs[SECTORS_PER_REQUEST.format(space, kind)] = (sectors, sums.get(REQUESTS.format(space, kind), 0))
            pairs[BYTES_PER_SECTOR.format(space, kind)] = (sums.get(BYTES.format(space, kind), 0), sectors)
    return {name: above / below for name, (above, below) in pairs.items() if below}


class Work(Struct, frozen=True):
    """Operations on floats, by precision and of matrices, and bytes of global memory: ``moved`` in sectors between the first
    cache and the warps, ``touched`` at least between memory and the caches."""

    operations: Mapping[str, int]
    matrix: int
    moved: int
    touched: int

    @property
    def flops(self) -> int:
        return sum(self.operations.values()) + self.matrix


def work_of(sums: Mapping[str, int], touched_sectors: int) -> Work:
    operations = {
        name: sum(times * sums.get(OPERATION.format(letter + kind), 0) for kind, times in OPERATIONS_OF.items())
        for letter, name in PRECISIONS.items()
    }
    moved = 32 * sum(sums.get(SECTORS.format("global", kind), 0) for kind in KINDS)
    return Work(operations, sums.get(MATRIX_OPERATIONS, 0), moved, 32 * touched_sectors)

"""The kernel of a litmus test: runs side by side and one after another, each on memory of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tests.clients.litmus.barriers import LAST_BARRIER, is_barrier
from tests.clients.litmus.code import SPACING, WARP, ThreadCode
from tests.clients.litmus.text import Litmus, NotExpressible

PATIENCE = 20_000
"""Tries: who waits at the start of a round does not let others run, so that threads start within nanoseconds."""
BATCH = 32
"""Rounds of several blocks that begin together. Those who meet let others run, which takes long where CPUs are busy."""
OPENING = 1_000_000_000
"""Tries at the start of a kernel, until every worker has taken a block. A worker that comes late would find none left."""
MEETING = 128
"""Bytes of a set's two counters in a round: who has met, who is at the start. The first of all are those of the opening."""
CONSTANTS = 65536
"""Bytes of constant memory."""
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


@dataclass(frozen=True)
class Plan:
    """Where threads lie, and how often they run.

    Threads of one CTA are one block, those of another CTA, or of another GPU, another block. ``placement``: each is a
    warp, whose lanes are runs (``warps``), or a lane beside the others (``lanes``, or ``lanes reversed``: the last first
    in the code). A ``set`` is the blocks of some runs.
    """

    litmus: Litmus
    placement: str
    sets: int
    rounds: int

    @property
    def ctas(self) -> list[tuple[int, int]]:
        return list(dict.fromkeys(thread.cta for thread in self.litmus.threads))

    def members(self, cta: tuple[int, int]) -> list[int]:
        return [i for i, thread in enumerate(self.litmus.threads) if thread.cta == cta]

    @property
    def widest(self) -> int:
        return max(len(self.members(cta)) for cta in self.ctas)

    @property
    def grid(self) -> int:
        return len(self.ctas) * self.sets

    @property
    def block(self) -> int:
        return WARP * self.widest if self.placement == "warps" else WARP

    @property
    def lanes(self) -> int:
        """Runs that a set does side by side."""
        return WARP if self.placement == "warps" else WARP // self.widest

    @property
    def runs(self) -> int:
        return self.sets * self.lanes * self.rounds

    @property
    def size(self) -> int:
        """Bytes of the locations of a run."""
        return SPACING * max(1, len(self.litmus.locations))


def placements(litmus: Litmus) -> list[str]:
    """Those in which a text can run. Barriers count warps."""
    alone = Plan(litmus, "warps", 1, 1).widest == 1
    return ["warps"] if alone or has_barriers(litmus) else ["warps", "lanes", "lanes reversed"]


def has_barriers(litmus: Litmus) -> bool:
    return any(is_barrier(instruction) for thread in litmus.threads for instruction in thread.instructions)


def has_constants(litmus: Litmus) -> bool:
    return any(instruction.opcode.startswith("cold") for thread in litmus.threads for instruction in thread.instructions)


def registers(litmus: Litmus) -> list[tuple[int, str]]:
    """Thread and name of the registers whose last values are kept, in order."""
    return [(i, name) for i in range(len(litmus.threads)) for name in ThreadCode(litmus, i).registers()]


def kernel(plan: Plan) -> str:
    """A module whose kernel ``litmus`` takes cells, results, counters, a seed, the blocks at once, a surface and a texture."""
    if has_barriers(plan.litmus) and plan.placement != "warps":
        raise NotExpressible("barriers between lanes of a warp")
    codes = [ThreadCode(plan.litmus, i) for i in range(len(plan.litmus.threads))]
    order = codes[::-1] if plan.placement == "lanes reversed" else codes
    bodies = "".join(_body(plan, code) for code in order)
    bank = f".const .align 64 .b8 bank[{CONSTANTS}];\n" if has_constants(plan.litmus) else ""
    first = "mov.u64 %constant, bank; add.u64 %constant, %constant, %away;" if bank else ""
    last = f"barrier.cta.sync {LAST_BARRIER};" if has_barriers(plan.litmus) else ""
    return f"""{HEAD}{bank}
.visible .entry litmus(.param .u64 cells, .param .u64 results, .param .u64 counters, .param .u32 seed, .param .u32 workers,
  .param .u64 surface, .param .u64 texture)
{{
  .reg .pred %done, %other; .reg .b32 %left, %at, %offset, %random, %turns, %set, %cta, %member, %lane, %run, %round;
  .reg .b32 %met, %tries;
  .reg .b64 %cell, %constant, %away, %result, %counter, %surface, %texture, %wide;
{"".join(code.declarations() for code in codes)}
  ld.param.u64 %surface, [surface]; ld.param.u64 %texture, [texture];
  mov.u32 %left, %ctaid.x; div.u32 %set, %left, {len(plan.ctas)}; rem.u32 %cta, %left, {len(plan.ctas)};
  {_member(plan)}
  mad.lo.u32 %run, %set, {plan.lanes}, %lane;
  ld.param.u32 %random, [seed]; mov.u32 %left, %tid.x; shr.u32 %left, %left, 5; mad.lo.u32 %left, %set, 61, %left;
  mad.lo.u32 %left, %left, 67, %cta; mad.lo.u32 %random, %left, -1640531527, %random;
  ld.param.u64 %counter, [counters]; ld.param.u32 %round, [workers]; mov.u32 %tries, 0;
  mov.u32 %left, %tid.x; setp.ne.u32 %done, %left, 0; @%done bra OPENING;
  red.relaxed.gpu.global.add.u32 [%counter], 1;
OPENING:
  ld.relaxed.gpu.global.u32 %met, [%counter]; setp.lt.u32 %done, %met, %round; add.u32 %tries, %tries, 1;
  setp.lt.and.u32 %done, %tries, {OPENING}, %done; @%done bra OPENING;
  mov.u32 %round, 0;
ROUND:
  mul.wide.u32 %away, %run, {plan.size}; cvt.u32.u64 %offset, %away; {first}
  ld.param.u64 %cell, [cells]; add.u64 %cell, %cell, %away;
  ld.param.u64 %counter, [counters]; mad.lo.u32 %left, %round, {plan.sets}, %set;
  add.u32 %left, %left, 1; mul.wide.u32 %wide, %left, {MEETING}; add.u64 %counter, %counter, %wide;
  ld.param.u64 %result, [results]; mul.wide.u32 %wide, %run, {4 * len(registers(plan.litmus))}; add.u64 %result, %result, %wide;
{_start(plan)}
{bodies}
ACTED:
  {last}
  add.u32 %run, %run, {plan.sets * plan.lanes}; add.u32 %round, %round, 1;
  setp.lt.u32 %done, %round, {plan.rounds}; @%done bra ROUND;
  ret;
}}
"""


def _start(plan: Plan) -> str:
    """Waits for the others of a set: at first until they have come, then, if they may run at the same time, for a while."""
    there, together = plan.lanes * len(plan.litmus.threads), len(plan.ctas) > 1
    batch = BATCH if together else 1
    meet = f"""  rem.u32 %left, %round, {batch}; setp.ne.u32 %done, %left, 0; @%done bra MET;
  red.relaxed.gpu.global.add.u32 [%counter], 1;
MEET:
  ld.relaxed.gpu.global.u32 %met, [%counter]; setp.lt.u32 %done, %met, {there}; @%done bra MEET;
MET:"""
    start = f"""  red.relaxed.gpu.global.add.u32 [%counter+64], 1; mov.u32 %tries, 0;
START:
  ld.relaxed.gpu.global.u32 %met, [%counter+64]; setp.lt.u32 %done, %met, {there}; add.u32 %tries, %tries, 1;
  setp.lt.and.u32 %done, %tries, {PATIENCE}, %done; @%done bra START;"""
    return f"{meet}\n{start}" if together else meet


def _member(plan: Plan) -> str:
    """Which thread of its CTA a thread is, and which of the runs side by side; what is neither exits."""
    counts = "".join(
        f" setp.eq.u32 %other, %cta, {i}; setp.ge.and.u32 %done, %member, {len(plan.members(cta))}, %other; @%done exit;"
        for i, cta in enumerate(plan.ctas)
    )
    if plan.placement == "warps":
        return f"mov.u32 %left, %tid.x; shr.u32 %member, %left, 5; and.b32 %lane, %left, 31;{counts}"
    split = f"mov.u32 %left, %tid.x; rem.u32 %member, %left, {plan.widest}; div.u32 %lane, %left, {plan.widest};"
    return f"{split} setp.ge.u32 %done, %lane, {plan.lanes}; @%done exit;{counts}"


def _body(plan: Plan, code: ThreadCode) -> str:
    cta = code.thread.cta
    place = [i for i, _ in registers(plan.litmus)].index(code.number) if code.registers() else 0
    stores = "\n".join(
        f"  st.global.u32 [%result+{4 * (place + i)}], %t{code.number}_{name};" for i, name in enumerate(code.registers())
    )
    lines = "\n".join(code.lines())
    return f"""
  setp.ne.u32 %done, %cta, {plan.ctas.index(cta)}; @%done bra NEXT_{code.number};
  setp.ne.u32 %done, %member, {plan.members(cta).index(code.number)}; @%done bra NEXT_{code.number};
{lines}
{stores}
  bra ACTED;
NEXT_{code.number}:"""

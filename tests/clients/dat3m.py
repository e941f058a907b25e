"""Dat3M's litmus tests of PTX as kernels: what its models forbid must never be seen, and what must end has to end.

``python -m tests.clients.dat3m DIRECTORY [PART ...]``: a checkout of https://github.com/hernanponcedeleon/Dat3M; only texts
whose path has one of the parts in it. ``--seeds N``: launches of each kernel. What cannot be run is listed with the reason.

Blocks stand for GPUs, too: one device is more than two promise. Aliases are one address, and there are no fences of the
proxies of surfaces, textures and constants in PTX: what a text forbids with them must not be seen without.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ptxemu
from tests.clients.litmus.barriers import all_get_past
from tests.clients.litmus.kernel import Plan, placements
from tests.clients.litmus.launch import launch, planned
from tests.clients.litmus.text import Litmus, NotExpressible, parse

VERDICTS = Path("dartagnan/src/test/resources")
OUTCOMES, ENDINGS = (
    ("PTXv6_0-expected.csv", "PTXv7_5-expected.csv"),
    ("PTXv6_0-Liveness-expected.csv", "PTXv7_5-Liveness-expected.csv"),
)
SETS, ROUNDS = 4, 64
WORKERS = (1, 2)
TIMEOUT = 60.0
SHORT = 2.0
"""Seconds for a text that may run for ever."""


def verdicts(folder: Path, names: tuple[str, ...]) -> dict[str, bool]:
    """Whether Dat3M confirms what a text says, by path. Its models agree on all texts that several of them judge."""
    found: dict[str, bool] = {}
    for name in names:
        for line in (folder / VERDICTS / name).read_text().split():
            path, _, verdict = line.partition(",")
            if found.setdefault(path, verdict == "1") != (verdict == "1"):
                raise ValueError(f"{path}: the models differ")
    return found


@dataclass
class Text:
    """A text with its verdicts: what must hold in all runs, or None, and whether all runs must end, or None."""

    path: str
    litmus: Litmus
    outcome: bool | None
    ends: bool | None

    @property
    def forbidden(self) -> bool | None:
        """The truth of the condition that no run may have. None if it may have both, or if nobody has judged."""
        if self.outcome is None or self.outcome == (self.litmus.quantifier == "exists"):
            return None
        return self.litmus.quantifier != "forall"

    def verdict(self, seeds: int) -> str:
        """A class of results; one that begins with FAIL is one."""
        seen = 0
        try:
            for device, plan, seed in self.launches(seeds):
                holds = launch(plan, device, seed, TIMEOUT if self.ends is not False else SHORT).holds()
                if self.forbidden is not None and (holds == self.forbidden).any():
                    count = (holds == self.forbidden).sum()
                    return f"FAIL: forbidden, {count} of {holds.size} runs, {plan.placement}, {device.workers} workers"
                seen += (holds != (self.litmus.quantifier == "forall")).sum()
        except ptxemu.Error as error:
            return self.unended(error)
        if not all_get_past(self.litmus):
            return "FAIL: ends, though threads wait at a barrier"
        if self.outcome is None:
            return "ends" if self.ends else "may run for ever, ended"
        if self.forbidden is not None:
            return "forbidden, never seen"
        return "allowed, seen" if seen else "allowed, not seen"

    def launches(self, seeds: int) -> Iterator[tuple[ptxemu.Device, Plan, int]]:
        for workers in WORKERS:
            with ptxemu.Device(workers=workers) as device:
                for placement in placements(self.litmus):
                    for seed in range(seeds):
                        yield device, planned(self.litmus, placement, SETS, ROUNDS), seed

    def unended(self, error: ptxemu.Error) -> str:
        if isinstance(error, ptxemu.Fault) and error.record["kind"] == "deadlock" and not all_get_past(self.litmus):
            return "cannot end: threads wait at a barrier for ever, which is found"
        if isinstance(error, ptxemu.LaunchTimeout) and self.ends is False:
            return "may run for ever, does"
        return f"FAIL: {error}"


def texts(folder: Path, parts: list[str], left_out: dict[str, str]) -> Iterator[Text]:
    outcomes, endings = verdicts(folder, OUTCOMES), verdicts(folder, ENDINGS)
    for file in sorted((folder / "litmus/PTX").rglob("*.litmus")):
        path = str(file.relative_to(folder))
        if parts and not any(part in path for part in parts):
            continue
        if path not in outcomes and path not in endings:
            left_out[path] = "Dat3M has no verdict"
            continue
        try:
            yield Text(path, parse(file.read_text()), outcomes.get(path), endings.get(path))
        except NotExpressible as reason:
            left_out[path] = str(reason)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_intermixed_args()
    left_out: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for text in texts(given.folder, given.parts, left_out):
        try:
            said = text.verdict(given.seeds)
        except NotExpressible as reason:
            left_out[text.path] = str(reason)
            continue
        counted[said.partition(":")[0]] += 1
        if said.startswith(("FAIL", "cannot")):
            print(f"{text.path}: {said}", flush=True)
    reasons = Counter(left_out.values())
    for path, reason in left_out.items():
        if reason != "Dat3M has no verdict":
            print(f"{path}: not run: {reason}")
    for what, count in [*counted.most_common(), *((f"not run: {reason}", count) for reason, count in reasons.most_common())]:
        print(f"{count:5} {what}")
    return 1 if counted["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Agreement with ptxas on small modules: records its verdicts, and compares.

    python -m tests.front.oracle.ptxas_agreement record       ask ptxas; writes tests/data/ptxas_agreement.jsonl.gz
    python -m tests.front.oracle.ptxas_agreement explore N S  compare on N or more other cases (seed S), and list what differs

A record is ``{"rule", "name", "text", "accepted", "line"}``; ``line`` is the first line that ptxas reports, 0 if it names none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import ptxemu
from tests.front.oracle.front_cases import Case
from tests.front.oracle.front_corpus import corpus_cases
from tests.front.oracle.front_forms import mutations
from tests.front.oracle.front_joined import joined_cases
from tests.front.oracle.front_modules import modules
from tests.front.oracle.front_random import random_cases
from tests.front.oracle.front_rows import gate_cases, row_cases
from tests.front.oracle.front_statements import statement_cases
from tests.front.oracle.front_sums import sum_cases
from tests.support.places import AGREEMENT

REPORTED = re.compile(r", line (\d+); (?:error|fatal)")
TARGET = re.compile(r"\.target\s+sm_(\d+[af]?)")
ARCHITECTURE = "100"  # to compile for, where a module runs on several
SEED, COUNT = 4, 1400
RANDOM, CHANGED, FORMS = 60, 350, 1700  # cases of each class of random modules; changed modules; forms of rows
TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    accepted: bool
    line: int


def architecture(text: str) -> str:
    """The target to compile for: that of the module if it runs nowhere else."""
    found = TARGET.search(text)
    word = found.group(1) if found else ARCHITECTURE
    if word[-1] in "af" or (word.isdigit() and int(word) > int(ARCHITECTURE)):
        return f"sm_{word}"
    return f"sm_{ARCHITECTURE}"


def ask_ptxas(text: str, folder: Path) -> Verdict | None:
    """What ptxas says; None if it crashes."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir=folder) as file:
        file.write(text)
        file.flush()
        command = ["ptxas", f"-arch={architecture(text)}", "-O0", "-o", "/dev/null", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    lines = [int(number) for number in REPORTED.findall(done.stdout + done.stderr)]
    return None if done.returncode < 0 else Verdict(done.returncode == 0, min(lines, default=0))


def ask_ptxemu(text: str) -> Verdict:
    """The verdict of strict mode; valid but unsupported instructions are accepted."""
    try:
        errors = [record for record in ptxemu.lint(text, strict=True) if record.severity == "error"]
    except ptxemu.UnsupportedError:
        errors = []
    return Verdict(not errors, min((record.line for record in errors), default=0))


def verdicts(cases: Iterable[Case]) -> list[dict[str, object]]:
    cases = list(cases)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda case: ask_ptxas(case.text, Path(folder)), cases)
        return [asdict(case) | asdict(answer) for case, answer in zip(cases, answers) if answer]


def read(path: Path = AGREEMENT) -> list[dict[str, object]]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def write(records: list[dict[str, object]], path: Path = AGREEMENT) -> None:
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as file:
        file.writelines(json.dumps(record).encode() + b"\n" for record in records)


def compare(records: list[dict[str, object]]) -> None:
    """Print what differs, and the figures of each rule class."""
    total: Counter[object] = Counter()
    agreed: Counter[object] = Counter()
    rejected: Counter[object] = Counter()
    placed: Counter[object] = Counter()
    for record in records:
        rule, text = record["rule"], str(record["text"])
        got = ask_ptxemu(text)
        total[rule] += 1
        if got.accepted != record["accepted"]:
            print(f"{'ptxas accepts' if record['accepted'] else 'ptxas rejects'} [{rule}] {record['name']}")
            continue
        agreed[rule] += 1
        if not got.accepted:
            rejected[rule] += record["line"] != 0  # ptxas names no line for what it finds late
            placed[rule] += record["line"] in (got.line, 0) and record["line"] != 0
            if record["line"] not in (got.line, 0):
                print(f"line {got.line}, ptxas {record['line']} [{rule}] {record['name']}")
    for rule in sorted(total, key=str):
        print(f"{rule!s:26} {agreed[rule]:5}/{total[rule]:<5} lines {placed[rule]:5}/{rejected[rule]:<5}")
    every, same = sum(total.values()), sum(agreed.values())
    print(f"agreement {same}/{every} = {same / every:.2%}, first line {sum(placed.values())}/{sum(rejected.values())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "explore", "compare"])
    parser.add_argument("numbers", nargs="*", type=int, help="N and S of explore")
    parser.add_argument("--save", type=Path, help="where explore keeps its records")
    options = parser.parse_args()
    if options.action != "compare" and shutil.which("ptxas") is None:
        parser.error("ptxas is not installed")
    if options.action == "compare":
        compare(read(options.save or AGREEMENT))
    elif options.action == "record":
        recorded = [
            *modules(),
            *statement_cases(),
            *mutations(SEED, COUNT),
            *random_cases(SEED, RANDOM),
            *corpus_cases(SEED, CHANGED),
            *joined_cases(),
            *sum_cases(),
        ]
        records = verdicts([*recorded, *row_cases(SEED, FORMS), *gate_cases(SEED)])
        write(records)
        compare(records)
    else:
        count, seed = options.numbers
        mutated = [*mutations(seed, count // 4), *random_cases(seed, count // 52), *corpus_cases(seed, count // 4)]
        records = verdicts([*mutated, *row_cases(seed, count // 4), *gate_cases(seed)])
        if options.save:
            write(records, options.save)
        compare(records)


if __name__ == "__main__":
    main()

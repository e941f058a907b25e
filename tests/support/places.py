"""Where things lie: the project's folders, and the data files that several rooms read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
PACKAGE = ROOT / "ptxemu"
CSRC = ROOT / "csrc"
DOCS = ROOT / "docs"
BENCH = ROOT / "bench"
SAMPLES = ROOT / "samples"

ISA = TESTS / "isa"
IR = TESTS / "ir"
ERRORS = TESTS / "errors"
DATA = TESTS / "data"
CORPUS = DATA / "corpus"
KERNELS = DATA / "kernels"
MODULES = DATA / "modules"
FATBIN = DATA / "fatbin"
DEBUGGED = DATA / "debugger"
SPEC = DATA / "spec"
AGREEMENT = DATA / "ptxas_agreement.jsonl.gz"

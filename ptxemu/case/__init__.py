"""Case files: a PTX file, its launches, their inputs and what they must produce, in TOML (docs/cases.md)."""

from ptxemu.case.discovery import case_file, find_cases
from ptxemu.case.runner import CaseResult, run_case
from ptxemu.case.schema import Case, read_case

__all__ = ["Case", "CaseResult", "case_file", "find_cases", "read_case", "run_case"]

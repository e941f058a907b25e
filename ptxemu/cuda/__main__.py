"""``python -m ptxemu.cuda SCRIPT [ARGUMENTS]``, or ``-m MODULE [ARGUMENTS]``: runs a program whose CUDA is ptxemu's."""

from __future__ import annotations

import os
import runpy
import sys

from ptxemu.process.cuda import environment

USAGE = "usage: python -m ptxemu.cuda SCRIPT [ARGUMENTS], or -m MODULE [ARGUMENTS]"
WRONG = 2


def main(arguments: list[str]) -> None:
    """Run the program in this process, as Python itself would; its children find the libraries, too."""
    is_module = arguments[:1] == ["-m"]
    program = arguments[is_module:]
    if not program or (program[0].startswith("-") and not is_module):
        print(USAGE, file=sys.stderr)
        sys.exit(WRONG)
    os.environ.update(environment(os.environ))
    sys.argv[:] = program
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    elif os.path.exists(program[0]):
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
    else:
        print(f"python -m ptxemu.cuda: there is no file {program[0]!r}", file=sys.stderr)
        sys.exit(WRONG)


if __name__ == "__main__":
    main(sys.argv[1:])

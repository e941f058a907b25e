"""The command line: ``ptxemu VERB``, for the verbs of ``COMMANDS``.

Exit codes: 0 success, 1 a fault or a failed comparison, 2 wrong input, or output that cannot be written, 3 PTX that is
valid but not supported, 4 an isolated command that died or ran over its time, 70 a bug in ptxemu (with a reproducer
saved), 130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from contextlib import suppress

import click

import ptxemu
from ptxemu.cli.isolation import restrict
from ptxemu.cli.streams import complain, finish, prepare
from ptxemu.process.gc_pause import importing_many
from ptxemu.process.interruptible import any_left
from ptxemu.text.errors import Error, InputError, InternalError, printable_lines

COMMANDS = (
    "run",
    "test",
    "profile",
    "debug",
    "record",
    "shrink",
    "diff",
    "lint",
    "info",
    "compile",
    "assemble",
    "disassemble",
    "cuda",
    "doctor",
)
INTERRUPTED = 130
COMPLETION = "_PTXEMU_COMPLETE"  # what shells set, which click obeys
CUT_OFF = 141  # what a shell makes of SIGPIPE


class _Commands(click.Group):
    """Commands are imported when they are used, which keeps start-up short."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with importing_many():
            command: click.Command = importlib.import_module(f"ptxemu.cli.verbs.{cmd_name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ptxemu.__version__, prog_name="ptxemu")
def cli() -> None:
    """Run NVIDIA PTX on the CPU."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code."""
    prepare()
    restrict()
    code = run(sys.argv[1:] if arguments is None else arguments)
    finish()
    gc.freeze()  # the process ends: nothing is to be found in the searches of the interpreter
    if code == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what remains is to end
    if any_left():  # an interrupted compilation, which an orderly exit would wait for
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command; its exit code. Errors become one message on stderr, never a traceback."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # a second one, while the first is told
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    try:
        code = cli.main(arguments, prog_name="ptxemu", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return INTERRUPTED
    except SystemExit as leave:  # of click: the completion of a shell is done, or nobody reads the output any more
        return int(leave.code or 0) if COMPLETION in os.environ else CUT_OFF
    except BrokenPipeError:
        return CUT_OFF
    except MemoryError:
        complain("ptxemu: error: out of memory")
        return InputError.exit_code
    except InternalError as error:
        return _save_reproducer(error, arguments)
    except Error as error:
        complain(_message(error))
        return error.exit_code
    except OSError as error:  # those of files have become errors of input
        complain(f"ptxemu: error: cannot write the output: {error.strerror or error}")
        return InputError.exit_code
    except Exception as error:
        return _save_reproducer(error, arguments)


def _save_reproducer(error: Exception, arguments: list[str]) -> int:
    with importing_many():  # it knows case files, and all that these import
        from ptxemu.cli.failure import save_reproducer

    return save_reproducer(error, arguments)


def _message(error: Error) -> str:
    text = str(error)
    return printable_lines(text if ": error: " in text.split("\n", 1)[0] else f"ptxemu: error: {text}")

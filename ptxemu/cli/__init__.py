"""The command line: ``ptxemu run | test | lint | info | compile | assemble | disassemble``.

Exit codes: 0 success, 1 a fault or a failed comparison, 2 wrong input, 3 PTX that is valid but not supported, 70 a bug
in ptxemu (with a reproducer saved), 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys

import click

import ptxemu
from ptxemu.cli.failure import save_reproducer
from ptxemu.errors import Error, InputError, InternalError

COMMANDS = ("run", "test", "lint", "info", "compile", "assemble", "disassemble")
INTERRUPTED = 130


class _Commands(click.Group):
    """Commands are imported when they are used, which keeps start-up short."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ptxemu.cli.{cmd_name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ptxemu.__version__, prog_name="ptxemu")
def cli() -> None:
    """Run NVIDIA PTX on the CPU."""


def main(arguments: list[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run a command; its exit code. Errors become one message on stderr, never a traceback."""
    try:
        code = cli.main(arguments, prog_name="ptxemu", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except MemoryError:
        click.echo("ptxemu: error: out of memory", err=True)
        return InputError.exit_code
    except InternalError as error:
        return save_reproducer(error, arguments)
    except Error as error:
        click.echo(_message(error), err=True)
        return error.exit_code
    except Exception as error:
        return save_reproducer(error, arguments)


def _message(error: Error) -> str:
    text = str(error)
    return text if ": error: " in text.split("\n", 1)[0] else f"ptxemu: error: {text}"


def _silence_stdout() -> None:
    """The reader of stdout has gone: nothing more may be written, not even at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

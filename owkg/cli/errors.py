"""Bad input becomes one clear line and exit code 2; a signal becomes exit code 128 and its number."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import typer

from owkg.errors import renamed
from owkg.terminal.tables import one_line

# Arguments that come from an option of another name.
_OPTIONS = {
    "spread": "--node-spread",
    "exponent": "--popularity-exponent",
    "filter_splits": "--filter",
    "num_candidates": "--candidates",
    "layouts": "--layout",
    "source": "NAME|FILE",
    "scores": "FILE",
    "sizes": "--size",
    "metrics": "--metric",
    "tables": "FILE",
    "ranks": "FILE",
    "systems": "FILE",
    "graph": "--kg",
    "kind": "--from",
    "k": "K",
    "p": "P",
}
# Until a signal that got lost is raised again.
_SOON_S = 0.05


# Letters of an error line at most, and how many of its end are kept of a longer one.
_LONGEST, _END = 1000, 300


def options_of(app: typer.Typer | Callable[..., object], arguments: Sequence[str]) -> dict[str, str] | None:
    """What the command that `arguments` call calls its parameters, by their names in Python.

    `--by` of an option, FILE of an argument. None where no command is called.
    """
    if not isinstance(app, typer.Typer):
        return None
    command = typer.main.get_command(app)
    for word in arguments:
        commands = getattr(command, "commands", {})
        if not commands:
            break
        command = commands.get(word, command)
    if getattr(command, "commands", {}):
        return None
    named = {}
    for one in command.params:
        flag = next((opt for opt in one.opts if opt.startswith("--")), None)
        metavar = (one.metavar or str(one.name).upper()).strip("[]{}").removesuffix("...")
        named[str(one.name).rstrip("_")] = flag or metavar
    return named


def option_named(argument: str, options: Mapping[str, str] | None) -> str:
    """An argument of the library as the option that it came from; of none of these, as plain words.

    Args:
        argument: its name.
        options: of `options_of`; None: every argument is an option.
    """
    flag, other = "--" + argument.replace("_", "-"), _OPTIONS.get(argument)
    if options is None:
        return other or flag
    known = set(options.values())
    return options.get(argument) or next(
        (one for one in (other, flag) if one in known), argument.replace("_", " ")
    )


def _one_line(message: str, options: Mapping[str, str] | None) -> str:
    """The message on one line of bounded length, its arguments named as the options that they came from."""

    def option(argument: str) -> str:
        return option_named(argument, options)

    line = one_line(" ".join(renamed(message, option).split()))
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - _END]} [... {len(line) - _LONGEST:,} letters ...] {line[-_END:]}"


def _is_out_of_device_memory(error: Exception) -> bool:
    """Whether JAX found no memory; told by its name and words, as JAX may not even be imported."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"JaxRuntimeError", "XlaRuntimeError"}) and bool(
        re.search("RESOURCE_EXHAUSTED|out of memory", str(error), re.IGNORECASE)
    )


def guarded(
    name: str, call: Callable[[], object], options: Callable[[], Mapping[str, str] | None] = lambda: None
) -> int:
    """Runs `call` and returns the exit code: its own int or 0, 2 for bad input, 130 for an interrupt.

    Output that nobody reads any more ends with 141, as a process that SIGPIPE ends.

    Args:
        name: what the error line starts with.
        call: a Typer app called with `standalone_mode=False`, or any function.
        options: of the command that is called, as `options_of`; is asked where there is an error.
    """
    message = ""
    try:
        code = call()
        code = code if isinstance(code, int) else 0
        if sys.stdout is not None:  # closed by whoever started the command
            sys.stdout.flush()
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        message = message.replace("Value error, ", "")  # a word of what Typer checks choices with
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code, message = 130, ""
    except BrokenPipeError:
        code = _unread()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # of which Typer makes an exit
            raise
        code = _unread()
    except (ValueError, OSError) as error:
        # The number of an error of the system says nothing that its words do not.
        code, message = 2, re.sub(r"^\[Errno \d+\] ", "", str(error))
    except MemoryError as error:
        code, message = 2, f"this takes more memory than there is: {error}"
    except Exception as error:
        if not _is_out_of_device_memory(error):
            raise
        code, message = 2, f"this takes more memory than there is: {str(error).splitlines()[0]}"
    if code == 130:
        print(f"{name}: interrupted", file=sys.stderr)
    elif code == 2 and message:
        print(f"{name}: error: {_one_line(message, options())}", file=sys.stderr)
    return code


def called(name: str, app: Callable[..., object], arguments: Sequence[str] | None = None) -> int:
    """Calls a Typer app and returns the exit code, as `guarded`.

    Args:
        name: of the command.
        app: to call.
        arguments: those of the process when None. Empty ones are refused: a path of no text would be the
            current folder.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)

    def call() -> object:
        if "" in given:
            place = given.index("")
            before = given[place - 1] if place else ""
            named = before if before.startswith("--") else f"argument {place + 1}"
            raise ValueError(f"{named} is empty; is a variable of the shell not set?")
        return app(args=given, prog_name=name, standalone_mode=False)

    return guarded(name, call, lambda: options_of(app, given))


def _unread() -> int:
    """The exit code where whoever read the output has gone; the interpreter must find no closed pipe."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 128 + signal.SIGPIPE


def heard() -> None:
    """Makes SIGTERM end the process in order, and no signal get lost while garbage is collected.

    Python drops what is raised in a callback of its garbage collector, and JAX has such a callback.
    """
    dropped = sys.unraisablehook

    def again(what: "sys.UnraisableHookArgs") -> None:
        number = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}.get(what.exc_type)
        if number is None:
            dropped(what)
        else:  # once the callback has returned
            here = threading.main_thread().ident
            threading.Timer(_SOON_S, signal.pthread_kill, [here, number]).start()

    sys.unraisablehook = again
    signal.signal(signal.SIGTERM, _terminated)


def _terminated(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Lets SIGINT and SIGTERM end the process as the system does, even in the middle of a compiled call.

    Python hears a signal only when the call returns, which may take minutes. For work that writes no file, in
    a process that has `heard` its signals.
    """
    if signal.getsignal(signal.SIGTERM) is not _terminated:
        yield
        return
    # Polars sets a handler of its own, in C, when it is loaded.
    import polars  # noqa: F401

    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Bad input becomes one clear line and exit code 2; a signal becomes exit code 128 plus its number."""

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from typing import Any

import typer

from owkg.errors import renamed
from owkg.terminal.process import dropped
from owkg.terminal.tables import one_line

# Options whose name differs from the argument of the library.
_OPTIONS = {
    "spread": "--node-spread",
    "exponent": "--popularity-exponent",
    "filter_splits": "--filter",
    "num_candidates": "--candidates",
    "layouts": "--write-layouts",
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
# Seconds until a lost signal is raised again.
_SOON_S = 0.05


# Longest error line in characters, and how many are kept from the end of a longer one.
_LONGEST, _END = 1000, 300


@cache
def command_of(app: typer.Typer) -> Any:
    """Command of a Typer app, which Typer itself would build for each call; later additions are not seen."""
    return typer.main.get_command(app)


def options_of(app: typer.Typer, arguments: Sequence[str]) -> dict[str, str] | None:
    """Names of the called command's parameters on the command line, by their names in Python.

    An option is named by its flag, such as `--by`, and an argument by its placeholder, such as FILE. None if
    `arguments` call no command.
    """
    command = command_of(app)
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
    """Option that an argument of the library came from, or plain words if there is none.

    Args:
        argument: name of the argument.
        options: result of `options_of`; if None, every argument counts as an option.
    """
    flag, other = "--" + argument.replace("_", "-"), _OPTIONS.get(argument)
    if options is None:
        return other or flag
    known = set(options.values())
    return options.get(argument) or next(
        (one for one in (other, flag) if one in known), argument.replace("_", " ")
    )


def _one_line(message: str, options: Mapping[str, str] | None) -> str:
    """Message on one line of bounded length, with arguments named as the options that they came from."""

    def option(argument: str) -> str:
        return option_named(argument, options)

    line = one_line(" ".join(renamed(message, option).split()))
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - _END]} [... {len(line) - _LONGEST:,} letters ...] {line[-_END:]}"


def _of_environment(error: Exception) -> str:
    """Message about memory or a device that the machine lacks; empty if the error has another cause.

    Errors of JAX are recognised by their name and text, because JAX may not have been imported.
    """
    if isinstance(error, ImportError) and re.search("failed to map|annot allocate memory", str(error)):
        return f"this takes more memory than there is: {error}"
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"JaxRuntimeError", "XlaRuntimeError"} and re.search(
        "RESOURCE_EXHAUSTED|out of memory", str(error), re.IGNORECASE
    ):
        return f"this takes more memory than there is: {str(error).splitlines()[0]}"
    if sys.flags.optimize > 1:
        what = f"{type(error).__name__}: {error}"
        return f"python -OO (PYTHONOPTIMIZE=2) removes docstrings, which a library needs here ({what})."
    if "jax" in sys.modules:
        from owkg.keys import require_device

        try:
            require_device()
        except RuntimeError as found:
            return str(found)
    if "Unable to initialize backend" in str(error):
        variables = (
            ", ".join(name for name in os.environ if name.startswith(("JAX_", "XLA_"))) or "none is set"
        )
        said = str(error).splitlines()[0].partition(" (you may need")[0].rstrip(".")
        return f"JAX cannot start ({said}); check the environment variables of JAX ({variables})."
    return ""


def require_variables() -> None:
    """Raises ValueError if an environment variable would crash a library that owkg needs."""
    threads = os.environ.get("POLARS_MAX_THREADS")
    if threads is not None and not (
        re.fullmatch(r"0*\d{1,4}", threads, re.ASCII) and 0 < int(threads) <= 1024
    ):
        raise ValueError(f"POLARS_MAX_THREADS must be a number of threads, from 1 to 1024, got {threads!r}.")


# Words of Typer for a value that it cannot parse, and their replacements.
_WORDS = {
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "must be a number",
    "Input should be a valid integer, unable to parse string as an integer": "must be a whole number",
    "Input should be": "must be",
}


def _of_typer(error: Any) -> str:
    """Message of an error of Typer, with the wrong value, or options that the user may have meant."""
    wrong = getattr(error, "option_name", None)
    if wrong is not None and getattr(error, "possibilities", None) is not None:
        near = _meant(wrong, [flag for one in error.ctx.command.params for flag in one.opts])
        return f"No such option: {wrong}" + (f"; did you mean {' or '.join(near)}?" if near else "")
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    about = getattr(getattr(error, "param", None), "help", None)
    if about and message.startswith("Missing "):  # say what it is, and where it comes from
        message = f"{message.removesuffix('.')}: {' '.join(about.split())}"
    for word, ours in _WORDS.items():
        message = message.replace(word, ours)
    details = getattr(error.__cause__, "errors", None)
    found = details()[0] if details is not None else {}
    if "input" in found and repr(found["input"]) not in message:
        message = f"{message.removesuffix('.')}, got {found['input']!r}."
    return message


def _meant(wrong: str, flags: Iterable[str]) -> list[str]:
    """Options that a wrong one may mean: by initials (--lr), by one of its words, or by spelling."""
    flags = [flag for flag in flags if flag.startswith("--") and flag != "--help"]
    words = {flag: flag.strip("-").split("-") for flag in flags}
    word = wrong.strip("-")
    return (
        [flag for flag in flags if len(words[flag]) > 1 and "".join(w[0] for w in words[flag]) == word]
        or [flag for flag in flags if set(word.split("-")) & set(words[flag])][:2]
        or get_close_matches(wrong, flags, 2, 0.7)
    )


def guarded(
    name: str, call: Callable[[], object], options: Callable[[], Mapping[str, str] | None] = lambda: None
) -> int:
    """Runs `call` and returns the exit code: its own int or 0, 2 for bad input, 130 for an interrupt.

    If the reader of the output has closed it, the code is 141, as for a process that SIGPIPE ends.

    Args:
        name: beginning of the error line.
        call: Typer app called with `standalone_mode=False`, or any function.
        options: function that returns the result of `options_of`; only called if there is an error.
    """
    message = ""
    try:
        require_variables()
        code = call()
        code = code if isinstance(code, int) else 0
        if sys.stdout is not None:  # None if it was closed before the start
            sys.stdout.flush()
    except typer.TyperException as error:
        code, message = 2, _of_typer(error)
    except (KeyboardInterrupt, typer.Abort):
        code, message = 130, ""
    except BrokenPipeError:
        code = _unread()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):  # Typer turns a broken pipe into an exit
            raise
        code = _unread()
    except (ValueError, OSError) as error:
        # The number of a system error adds nothing to its text.
        code, message = 2, re.sub(r"^\[Errno \d+\] ", "", str(error))
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            message = f"{error.filename}: it is a loop of links."
    except MemoryError as error:
        code, message = 2, f"this takes more memory than there is: {error}".removesuffix(": ")
    except Exception as error:
        message = _of_environment(error)
        if not message:
            raise
        code = 2
    if code == 130:
        print(f"{name}: interrupted", file=sys.stderr)
    elif code == 2 and message:
        print(f"{name}: error: {_one_line(message, options())}", file=sys.stderr)
    return code


def called(name: str, app: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Calls a Typer app and returns the exit code, as `guarded` does.

    Args:
        name: name of the command.
        app: app to call.
        arguments: arguments of the command. Default: the arguments of the process. An empty one is an error,
            because an empty path would mean the current folder.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)

    def call() -> object:
        if "" in given:
            place = given.index("")
            before = given[place - 1] if place else ""
            named = before if before.startswith("--") else f"argument {place + 1}"
            raise ValueError(f"{named} is empty; is a shell variable unset?")
        for place, word in enumerate(given):
            if re.search("[\ud800-\udfff]", word):  # bytes that are not text
                encoding = sys.getfilesystemencoding()
                hint = "PYTHONUTF8=1 reads UTF-8"
                raise ValueError(f"argument {place + 1} must be text in {encoding}, got {word!r}; {hint}.")
        return command_of(app)(args=given, prog_name=name, standalone_mode=False)

    return guarded(name, call, lambda: options_of(app, given))


def _unread() -> int:
    """Exit code if nobody reads the output; the streams are replaced so that exiting prints no error."""
    dropped(sys.__stdout__, sys.__stderr__)
    return 128 + signal.SIGPIPE


def heard() -> None:
    """Lets SIGTERM and SIGHUP end the process cleanly, and keeps garbage collection from losing a signal.

    Python drops exceptions raised in a callback of its garbage collector, and JAX has such a callback.
    """
    before = sys.unraisablehook

    def again(what: "sys.UnraisableHookArgs") -> None:
        number = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}.get(what.exc_type)
        if number is None:
            before(what)
        elif not sys.is_finalizing():  # raise it again after the callback has returned
            here = threading.main_thread().ident
            threading.Timer(_SOON_S, signal.pthread_kill, [here, number]).start()

    sys.unraisablehook = again
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # from here on, an interrupt ends work cleanly
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, _terminated)


def unheard() -> None:
    """Lets signals end the process at once, because an interpreter that is ending handles none."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _terminated(number: int, _: object) -> None:
    sys.exit(128 + number)


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Lets SIGINT, SIGTERM and SIGHUP end the process at once, even within a compiled call.

    Python handles a signal only when the call returns, which may take minutes. Use it for work that writes no
    file, in a process that has called `heard`.
    """
    if signal.getsignal(signal.SIGTERM) is not _terminated:
        yield
        return
    # Import Polars first, because it sets a handler of its own, in C.
    import polars  # noqa: F401

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in ends if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

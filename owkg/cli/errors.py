"""Bad input becomes one clear line and exit code 2; an interrupt becomes exit code 130."""

import os
import re
import sys
from collections.abc import Callable

import typer

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
    "summaries": "--metric",
    "tables": "FILE",
    "k": "K",
    "p": "P",
}


# What a message quotes, a value; or a word in backquotes at the start of one, an argument.
_ARGUMENT = re.compile(
    r"""(?<!\w)'(?:[^'\\]|\\.)*'(?!\w) | (?<!\w)"(?:[^"\\]|\\.)*"(?!\w) | (?<![^\s(])`(\w+)`""", re.VERBOSE
)
# Letters of an error line at most, and how many of its end are kept of a longer one.
_LONGEST, _END = 1000, 300


def renamed(message: str, name: Callable[[str], str]) -> str:
    """The message with the arguments that it names in backquotes as `name` has them; values stay."""
    return _ARGUMENT.sub(lambda match: match[0] if match[1] is None else name(match[1]), message)


def _one_line(message: str) -> str:
    """The message on one line of bounded length, its arguments named as the options that they came from."""

    def option(argument: str) -> str:
        return _OPTIONS.get(argument, "--" + argument.replace("_", "-"))

    line = " ".join(renamed(message, option).split())
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - _END]} [... {len(line) - _LONGEST:,} letters ...] {line[-_END:]}"


def _is_out_of_device_memory(error: Exception) -> bool:
    """Whether JAX found no memory; told by its name and words, as JAX may not even be imported."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"JaxRuntimeError", "XlaRuntimeError"}) and bool(
        re.search("RESOURCE_EXHAUSTED|out of memory", str(error), re.IGNORECASE)
    )


def guarded(name: str, call: Callable[[], object]) -> int:
    """Runs `call` and returns the exit code: its own int or 0, 2 for bad input, 130 for an interrupt.

    Args:
        name: what the error line starts with.
        call: a Typer app called with `standalone_mode=False`, or any function.
    """
    message = ""
    try:
        code = call()
        code = code if isinstance(code, int) else 0
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code, message = 130, ""
    except BrokenPipeError:
        # Whoever read the output has read enough; the interpreter must not find the pipe closed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
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
        print(f"{name}: error: {_one_line(message)}", file=sys.stderr)
    return code

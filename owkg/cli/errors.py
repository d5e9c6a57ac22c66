"""Bad input becomes one clear line and exit code 2; an interrupt becomes exit code 130."""

import re
import sys
from collections.abc import Callable

import typer

_ARGUMENTS = (
    "strength",
    "other_strength",
    "sparsity",
    "correlation",
    "other_correlation",
    "num_answers",
    "num_entities",
    "trials",
    "inconsistency",
    "num_queries",
)
_NAMED = re.compile(f"`({'|'.join(_ARGUMENTS)})`")


def guarded(name: str, call: Callable[[], object]) -> int:
    """Runs `call` and returns the exit code: its own int or 0, 2 for bad input, 130 for an interrupt.

    Args:
        name: what the error line starts with.
        call: a Typer app called with `standalone_mode=False`, or any function.
    """
    try:
        result = call()
        return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
    except (KeyboardInterrupt, typer.Abort):
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        message = str(error)
    # Arguments are named as the options that they came from.
    message = _NAMED.sub(lambda match: "--" + match[1].replace("_", "-"), message)
    print(f"{name}: error: {' '.join(message.split())}", file=sys.stderr)
    return 2

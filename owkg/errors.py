"""Errors about arguments, and the renaming of the arguments in their messages."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

# Maximum length of a message, which is one line; the value that it shows may be a whole table.
_LONGEST = 1000


class ArgumentError(ValueError):
    """Error about an argument, shown as "`name` message".

    Attributes:
        name: name of the argument.
        message: what the argument must be and what it is.
    """

    def __init__(self, name: str, message: str) -> None:
        line = message.partition("\n")[0][:_LONGEST]
        self.name, self.message = name, line if line == message else f"{line} ..."
        super().__init__(name, self.message)

    def __str__(self) -> str:
        return f"`{self.name}` {self.message}"


# Either a quoted value in a message, or a word in backquotes at the start of a word, which is an argument.
_ARGUMENT = re.compile(
    r"""(?<![\w\\])'(?:[^'\\]|\\.)*'(?!\w) | (?<![\w\\])"(?:[^"\\]|\\.)*"(?!\w) | (?<![^\s(])`(\w+)`""",
    re.VERBOSE,
)


def renamed(message: str, name: Callable[[str], str]) -> str:
    """Message in which `name` renames the arguments in backquotes; quoted values stay."""
    return _ARGUMENT.sub(lambda match: match[0] if match[1] is None else name(match[1]), message)


@contextmanager
def naming(names: Mapping[str, str] | Callable[[str], str], where: str = "") -> Iterator[None]:
    """Context in which errors use the caller's names of their arguments.

    Args:
        names: replacement of each argument, such as "`systems`" for an argument of the caller, or any text.
            An argument without an entry keeps its name.
        where: beginning of the message, such as the file that holds the values. Default: none.
    """

    def own(name: str) -> str:
        return names(name) if callable(names) else names.get(name, f"`{name}`")

    try:
        yield
    except ValueError as error:
        if isinstance(error, ArgumentError) and not where:
            shown = own(error.name)
            if shown == f"`{shown[1:-1]}`":
                raise ArgumentError(shown[1:-1], renamed(error.message, own)) from None
        text = where + renamed(str(error), own)
        if text == str(error):  # the message names no argument, so it stays
            raise
        raise ValueError(text) from None

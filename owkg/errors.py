"""Errors of arguments, and whose arguments they are."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

# A message is one line, at most so long: what it shows may be a whole table.
_LONGEST = 1000


class ArgumentError(ValueError):
    """A bad argument, shown as "`name` message".

    Attributes:
        name: of the argument.
        message: what it must be, and what it is.
    """

    def __init__(self, name: str, message: str) -> None:
        line = message.partition("\n")[0][:_LONGEST]
        self.name, self.message = name, line if line == message else f"{line} ..."
        super().__init__(name, self.message)

    def __str__(self) -> str:
        return f"`{self.name}` {self.message}"


# What a message quotes, a value; or a word in backquotes at the start of one, an argument.
_ARGUMENT = re.compile(
    r"""(?<![\w\\])'(?:[^'\\]|\\.)*'(?!\w) | (?<![\w\\])"(?:[^"\\]|\\.)*"(?!\w) | (?<![^\s(])`(\w+)`""",
    re.VERBOSE,
)


def renamed(message: str, name: Callable[[str], str]) -> str:
    """The message with the arguments that it names in backquotes as `name` has them; values stay."""
    return _ARGUMENT.sub(lambda match: match[0] if match[1] is None else name(match[1]), message)


@contextmanager
def naming(names: Mapping[str, str] | Callable[[str], str], where: str = "") -> Iterator[None]:
    """Errors within name what their arguments come from here.

    Args:
        names: by argument, what stands in its place: "`systems`" for an argument of the caller, or any text.
            Without an entry an argument keeps its name.
        where: what a message begins with, such as the file that the values are from.
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
        if text == str(error):  # of no argument: where it came from is all that it says
            raise
        raise ValueError(text) from None

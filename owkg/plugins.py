"""Modules of users, which add what is looked up by name: `OWKG_PLUGINS=one,other.two` imports them.

A registry calls `load` where something is looked up in it; who asks for nothing imports nothing.
"""

import os
from importlib import import_module

VARIABLE = "OWKG_PLUGINS"
"""The environment variable that names modules, separated by commas."""

# Those still to be imported; None: the variable has not been read yet.
_waiting: list[str] | None = None


def load() -> None:
    """Imports the modules that `VARIABLE` names, in their order; each once in a process.

    Raises:
        ValueError: naming the variable and the module, if that cannot be imported.
    """
    global _waiting
    if _waiting is None:
        _waiting = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    while _waiting:
        name = _waiting.pop(0)  # first: what it registers may look something up
        try:
            import_module(name)
        except Exception as error:
            _waiting.insert(0, name)
            text = (str(error).splitlines() or [""])[0]
            where = "" if not isinstance(error, ModuleNotFoundError) else " (is its folder in PYTHONPATH?)"
            raise ValueError(
                f"{VARIABLE}: the module {name!r} cannot be imported: {type(error).__name__}: {text}{where}"
            ) from error

"""Modules of users, which add what is looked up by name: `OWKG_PLUGINS=one,two.three` imports them.

A registry calls `load` where something is looked up in it; who asks for nothing imports nothing.
"""

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

VARIABLE = "OWKG_PLUGINS"
"""The environment variable that names modules, or paths that end in .py, separated by commas."""

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
            _file(Path(name)) if name.endswith(".py") else import_module(name)
        except Exception as error:
            _waiting.insert(0, name)
            text = (str(error).splitlines() or [""])[0]
            where = " (is its folder in PYTHONPATH?)" if isinstance(error, ModuleNotFoundError) else ""
            raise ValueError(
                f"{VARIABLE}: the module {name!r} cannot be imported: {type(error).__name__}: {text}{where}"
            ) from error


def _file(path: Path) -> None:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"no file {path}.")
    sys.modules[path.stem] = module = module_from_spec(spec)
    spec.loader.exec_module(module)

"""Modules of the user that extend owkg's registries; `OWKG_PLUGINS=one,two.three` imports them.

A registry calls `load` at each look-up, so nothing is imported before it is needed.
"""

import os
import re
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

VARIABLE = "OWKG_PLUGINS"
"""Environment variable with modules, or paths that end in .py, separated by commas."""

# Modules still to be imported; None before the variable is read.
_waiting: list[str] | None = None
_loading = False


def load() -> None:
    """Imports the modules that `VARIABLE` names, in their order; each once in a process.

    Raises:
        ValueError: naming the variable and the module, if the module cannot be imported.
    """
    global _waiting, _loading
    if _waiting is None:
        names = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
        _waiting = [name for name in dict.fromkeys(names) if name]
    while _waiting and not _loading:  # a module may look something up while it registers
        name = _waiting[0]
        _loading = True
        try:
            _file(Path(name)) if name.endswith(".py") else import_module(name)
            _waiting.pop(0)
        except (Exception, SystemExit) as error:
            text = (str(error).splitlines() or [""])[0]
            where = " (is its folder in PYTHONPATH?)" if isinstance(error, ModuleNotFoundError) else ""
            raise ValueError(
                f"{VARIABLE}: the module {name!r} cannot be imported: {type(error).__name__}: {text}{where}"
            ) from error
        finally:
            _loading = False


def _file(path: Path) -> None:
    # A name of its own, because the file may have the name of an installed module.
    name = "owkg_plugin_" + re.sub(r"\W", "_", str(path.resolve()))
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"no file {path}.")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)

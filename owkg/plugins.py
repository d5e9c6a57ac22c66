"""Modules of a user's own, imported before a name is looked up: those that `OWKG_PLUGINS` names."""

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

VARIABLE = "OWKG_PLUGINS"
_asked = False


def load() -> None:
    """Imports each module of the variable, once in a process; what they register is there afterwards.

    The variable holds names of modules, or paths of files that end in .py, with commas between them.

    Raises:
        ValueError: if one cannot be imported, with its name.
    """
    global _asked
    if _asked:
        return
    _asked = True  # before: what a module registers is looked up among the names that there are
    for name in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        try:
            _file(Path(name)) if name.endswith(".py") else import_module(name)
        except Exception as error:
            _asked = False
            raise ValueError(f"{VARIABLE}: {name!r} cannot be imported: {error}") from error


def _file(path: Path) -> None:
    name = path.stem
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module.")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)

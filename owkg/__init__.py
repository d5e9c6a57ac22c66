"""owkg: how far can a link-prediction result on an incomplete knowledge graph be trusted?"""

from importlib import import_module
from types import ModuleType

from owkg.provenance import __version__

__all__ = ["__version__", "kg", "metrics", "openworld", "ranks", "sampling", "simulate", "theory"]


def __getattr__(name: str) -> ModuleType:
    # A room is loaded when it is entered: most need JAX, whose import takes as long as many a command.
    if name in __all__:
        return import_module(f"owkg.{name}")
    raise AttributeError(f"module 'owkg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""owkg: how far can a link-prediction result on an incomplete knowledge graph be trusted?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from owkg.provenance import __version__

if TYPE_CHECKING:
    from owkg import kg, metrics, openworld, ranks, sampling, simulate, theory

__all__ = ["__version__", "kg", "metrics", "openworld", "ranks", "sampling", "simulate", "theory"]


def __getattr__(name: str) -> Any:
    """A part, imported when it is first asked for: what a command does not need costs it no time."""
    if name in __all__:
        return import_module(f"owkg.{name}")
    raise AttributeError(f"module 'owkg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

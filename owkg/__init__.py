"""owkg: how far can a link-prediction result on an incomplete knowledge graph be trusted?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from owkg import (
        align,
        auditing,
        classification,
        conformance,
        estimation,
        evaluation,
        interop,
        ir,
        judge,
        keys,
        kg,
        metrics,
        models,
        openworld,
        plots,
        pools,
        rank_weights,
        ranks,
        report,
        sampling,
        simulate,
        stats,
        theory,
        train,
    )
    from owkg.auditing import audit
    from owkg.classification import classify
    from owkg.files.storage import __version__
    from owkg.judge.compare import compare
    from owkg.kg import read_graph
    from owkg.metrics.front import evaluate
    from owkg.pools.accepting import accept
    from owkg.pools.estimating import estimate
    from owkg.ranks import RankTable, rank, read_ranks

# Modules of the functions and of the version; the other names are packages.
_DOORS = {
    "RankTable": "owkg.ranks",
    "__version__": "owkg.files.storage",
    "accept": "owkg.pools.accepting",
    "audit": "owkg.auditing",
    "classify": "owkg.classification",
    "compare": "owkg.judge.compare",
    "estimate": "owkg.pools.estimating",
    "evaluate": "owkg.metrics.front",
    "rank": "owkg.ranks",
    "read_graph": "owkg.kg",
    "read_ranks": "owkg.ranks",
}

__all__ = [
    "RankTable",
    "__version__",
    "accept",
    "align",
    "audit",
    "auditing",
    "classification",
    "classify",
    "compare",
    "conformance",
    "estimate",
    "estimation",
    "evaluate",
    "evaluation",
    "interop",
    "ir",
    "judge",
    "keys",
    "kg",
    "metrics",
    "models",
    "openworld",
    "plots",
    "pools",
    "rank",
    "rank_weights",
    "ranks",
    "read_graph",
    "read_ranks",
    "report",
    "sampling",
    "simulate",
    "stats",
    "theory",
    "train",
]


def __getattr__(name: str) -> Any:
    """Package or function of owkg, imported at its first use."""
    if name in _DOORS:
        return getattr(import_module(_DOORS[name]), name)
    if name in __all__:
        return import_module(f"owkg.{name}")
    raise AttributeError(f"module 'owkg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

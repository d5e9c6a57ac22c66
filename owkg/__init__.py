"""owkg: how far can a link-prediction result on an incomplete knowledge graph be trusted?"""

from owkg import kg, metrics, openworld, ranks, sampling, simulate, theory
from owkg.provenance import __version__

__all__ = ["__version__", "kg", "metrics", "openworld", "ranks", "sampling", "simulate", "theory"]

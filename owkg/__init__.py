"""owkg: how far can a link-prediction result on an incomplete knowledge graph be trusted?"""

from owkg import kg, metrics, openworld, ranks, sampling, simulate, theory

__version__ = "0.1.0"

__all__ = ["__version__", "kg", "metrics", "openworld", "ranks", "sampling", "simulate", "theory"]

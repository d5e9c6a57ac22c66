"""Conformance of libraries: vectors of ranks, rank metrics and IR measures with their expected values."""

from owkg.conformance.front import ADAPTERS, adapter, check, read_results
from owkg.conformance.runner import Adapter, Vector, outcome, results, summary, vectors, verdict_of, verdicts

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Vector",
    "adapter",
    "check",
    "outcome",
    "read_results",
    "results",
    "summary",
    "vectors",
    "verdict_of",
    "verdicts",
]

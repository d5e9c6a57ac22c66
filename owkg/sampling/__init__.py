"""Open-world benchmarks sampled from closed worlds: missing facts, training facts and test queries."""

from owkg.openworld import RelationBased
from owkg.sampling.card import MISSING_MODELS, describe
from owkg.sampling.facts import read_facts
from owkg.sampling.layouts import LAYOUTS, query_table
from owkg.sampling.queries import PARTS, SampledQueries, answers
from owkg.sampling.readme import compared
from owkg.sampling.sample import Alpha, OpenWorld, SamplingDesign, alpha, sample
from owkg.sampling.stratified import stratified_sample
from owkg.sampling.survival import FactModel, survival
from owkg.sampling.write import write_worlds

__all__ = [
    "LAYOUTS",
    "MISSING_MODELS",
    "PARTS",
    "Alpha",
    "FactModel",
    "OpenWorld",
    "RelationBased",
    "SampledQueries",
    "SamplingDesign",
    "alpha",
    "answers",
    "compared",
    "describe",
    "query_table",
    "read_facts",
    "sample",
    "stratified_sample",
    "survival",
    "write_worlds",
]

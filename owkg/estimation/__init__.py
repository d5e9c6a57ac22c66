"""Estimates from few judgements: designs, the free proxy, intervals, plans, and predictions to accept."""

from owkg.estimation.annotators import ErrorRates
from owkg.estimation.drawing import Asked, Drawing, Unit, draw
from owkg.estimation.estimate import Estimate, estimate
from owkg.estimation.judged import DrawnPool
from owkg.estimation.measures import measure
from owkg.estimation.missing_share import Missing
from owkg.estimation.plan import after_pilot, plan, units_for
from owkg.estimation.population import Population, population
from owkg.estimation.proxy import free_proxy

__all__ = [
    "Asked",
    "Drawing",
    "DrawnPool",
    "ErrorRates",
    "Estimate",
    "Missing",
    "Population",
    "Unit",
    "after_pilot",
    "draw",
    "estimate",
    "free_proxy",
    "measure",
    "plan",
    "population",
    "units_for",
]

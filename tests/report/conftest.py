"""Audits made by hand: of names that break HTML, Markdown and LaTeX unless they are escaped."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from owkg.auditing.result import (
    BOX,
    FACTS,
    GRID,
    JUDGED,
    MODELS,
    PAIRS,
    PLANS,
    POWER,
    VERDICTS,
    WEIGHTS,
    Audit,
)

NASTY = "</script><script>alert(1)</script>"
NAMES = ("ComplEx", NASTY, "a|b_50% & `c` $d$")
METRICS = ("mrr", "hits@10")
ASSUMPTIONS = {
    "sparsity": [0.2, 0.5],
    "correlation": [0.0, 0.1],
    "sparsity_from": "given",
    "correlation_from": "given",
    "level": 0.95,
    "test": "randomisation",
    "average": "answers",
    "ties": "realistic",
    "filtered": True,
    "candidates": [14_505, 14_505],
    "queries": 20_466,
    "answers": 29_003,
    "lists": 100,
    "calibration": "closed worlds",
    "versions": {"owkg": "0.1.0", "numpy": "2.4.6"},
    "notes": ["All intervals and tests treat whole queries, not single answers, as independent."],
}


def framed(schema, rows):
    """Rows as a frame, null where they say nothing."""
    full = [{name: row.get(name) for name in schema} for row in rows]
    return pl.DataFrame(full, schema=schema, strict=False)


def made(names=NAMES, metrics=METRICS, *, sparsities=5, correlations=7, facts=2, **assumptions):
    """An audit in which every model is better than the next one, and each pair has another verdict."""
    beta, rho = np.linspace(0, 0.8, sparsities), np.linspace(-0.3, 0.3, correlations)
    queries = np.unique(np.geomspace(30, 100_000, 12).round().astype(int))
    models, pairs, grid, box, sheet, power = [], [], [], [], [], []
    for metric in metrics:
        named = {"metric": metric, "average": "answers"}
        values = 0.4 - 0.02 * np.arange(len(names)) + 0.1 * (metric != "mrr")
        for name, value in zip(names, values.tolist(), strict=True):
            models.append(
                {"model": name, **named, "queries": 20_466, "answers": 29_003, "value": value}
                | {"ci_low": value - 0.01, "ci_high": value + 0.01, "strength": value + 0.1}
                | {"strength_low": value, "strength_high": value + 0.2, "full": value + 0.15}
                | {"full_low": value + 0.05, "full_high": value + 0.25}
            )
            for b in beta.tolist():
                full = min(value + b / 3, 1.0)
                ends = {"full_low": full - 0.02 - b / 20, "full_high": full + 0.02 + b / 20}
                grid.append({"model": name, **named, "sparsity": b, "strength": full, "full": full} | ends)
        for i, (one, other) in enumerate(combinations(range(len(names)), 2)):
            both = {"first": names[one], "second": names[other], **named}
            gap = float(values[one] - values[other])
            pairs.append(
                both
                | {"difference": gap, "ci_low": gap - 0.015, "ci_high": gap + 0.015, "p_value": 0.0123}
                | {"certified": (34, 0, None)[i % 3], "demonstrated": (51, None, None)[i % 3]}
                | {"share": (0.0012, None, None)[i % 3], "gamma": float("nan")}
                | {"probability_low": 0.61, "probability_high": 0.97, "breakdown_sparsity": 0.42}
                | {"breakdown_correlation": 0.07, "required_queries": 5678.0}
                | {"verdict": (VERDICTS[2], None, VERDICTS[0], VERDICTS[1], VERDICTS[3])[i % 5]}
            )
            for b in beta.tolist():
                for r in rho.tolist():
                    p = (
                        None
                        if r > 0.25 and b < 0.1
                        else float(1 / (1 + np.exp(-40 * (gap - b * r + 0.01 * i))))
                    )
                    box.append(both | {"sparsity": b, "correlation_difference": r, "probability": p})
            power += [
                both | {"queries": count, "wrong_order": 0.5 / (1 + gap * count**0.5)}
                for count in queries.tolist()
            ]
            for j in range(facts):
                asked = {"query": f"({names[0]}, r, ?)", "side": "tail", "entity": f"e{j}", "relation": "<r>"}
                sheet.append(both | asked | {"answer": f"x{i}"})
    judged = [
        {"model": name, "side": side, "category": side and "N-N", "queries": 90, "known": 120, "found": 60}
        | {f"{key}{end}": 0.3 for key in ("sparsity", "test_strength") for end in ("", "_low", "_high")}
        for name in names
        for side in (None, "head")
    ]
    weights = [
        {"first": one, "second": other, "average": "answers", "metric": metric, "focus": focus}
        | {"required_queries": 640.0, "least_focus": least, "held_out": least and 690.0}
        for one, other in combinations(names, 2)
        for metric, focus, least in (("mrr", 0.109, None), ("best weight", 0.1, 0.1))
    ]
    plans = [
        {"metric": "RR@10", "unit": "prefixes", "count": n, "width": 0.5 / n, "width_pair": 0.6 / n}
        | {"judgements": 3 * n, "hours": n / 30}
        for n in (50, 100)
    ]
    tables = (
        (MODELS, models),
        (PAIRS, pairs),
        (GRID, grid),
        (BOX, box),
        (FACTS, sheet),
        (POWER, power),
        (WEIGHTS, weights),
        (JUDGED, judged),
        (PLANS, plans),
    )
    return Audit(*(framed(*table) for table in tables), assumptions=ASSUMPTIONS | assumptions)


@pytest.fixture(scope="session")
def make():
    """`made`, an audit to order."""
    return made


@pytest.fixture(scope="session")
def names():
    """Of the models of `audit`; the second one ends a script, the third is full of marks."""
    return NAMES


@pytest.fixture(scope="session")
def audit():
    """Three models, two metrics."""
    return made()

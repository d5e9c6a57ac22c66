"""Result of an audit as frames, with the assumptions that it rests on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import matplotlib.figure

MODELS = {
    "model": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "queries": pl.Int64,
    "answers": pl.Int64,
    "value": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "strength": pl.Float64,
    "strength_low": pl.Float64,
    "strength_high": pl.Float64,
    "full": pl.Float64,
    "full_low": pl.Float64,
    "full_high": pl.Float64,
    "refuted": pl.Float64,
}
"""Columns of `Audit.models`."""

PAIRS = {
    "first": pl.String,
    "second": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "difference": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "certified": pl.Int64,
    "demonstrated": pl.Int64,
    "share": pl.Float64,
    "gamma": pl.Float64,
    "probability_low": pl.Float64,
    "probability_high": pl.Float64,
    "breakdown_sparsity": pl.Float64,
    "breakdown_correlation": pl.Float64,
    "required_queries": pl.Float64,
    "verdict": pl.String,
}
"""Columns of `Audit.pairs`."""

GRID = {
    "model": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "sparsity": pl.Float64,
    "strength": pl.Float64,
    "full": pl.Float64,
    "full_low": pl.Float64,
    "full_high": pl.Float64,
}
"""Columns of `Audit.grid`."""

BOX = {
    "first": pl.String,
    "second": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "sparsity": pl.Float64,
    "correlation_difference": pl.Float64,
    "probability": pl.Float64,
}
"""Columns of `Audit.box`."""

FACTS = {
    "first": pl.String,
    "second": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "query": pl.String,
    "side": pl.String,
    "entity": pl.String,
    "relation": pl.String,
    "answer": pl.String,
}
"""Columns of `Audit.facts`."""

POWER = {
    "first": pl.String,
    "second": pl.String,
    "metric": pl.String,
    "average": pl.String,
    "queries": pl.Int64,
    "wrong_order": pl.Float64,
}
"""Columns of `Audit.power`."""

WEIGHTS = {
    "first": pl.String,
    "second": pl.String,
    "average": pl.String,
    "metric": pl.String,
    "focus": pl.Float64,
    "least_focus": pl.Float64,
    "required_queries": pl.Float64,
    "held_out": pl.Float64,
}
"""Columns of `Audit.weights`."""

JUDGED = {
    "model": pl.String,
    "side": pl.String,
    "category": pl.String,
    "queries": pl.Int64,
    "known": pl.Int64,
    "found": pl.Int64,
    "design": pl.String,
    "sparsity": pl.Float64,
    "sparsity_low": pl.Float64,
    "sparsity_high": pl.Float64,
    "missing_strength": pl.Float64,
    "missing_strength_low": pl.Float64,
    "missing_strength_high": pl.Float64,
    "test_strength": pl.Float64,
    "test_strength_low": pl.Float64,
    "test_strength_high": pl.Float64,
    "correlation": pl.Float64,
    "correlation_low": pl.Float64,
    "correlation_high": pl.Float64,
}
"""Columns of `Audit.judged`, and of `judged_strengths`."""

PLANS = {
    "metric": pl.String, "unit": pl.String, "count": pl.Int64, "width": pl.Float64, "width_pair": pl.Float64,
    "judgements": pl.Int64, "hours": pl.Float64,
}  # fmt: skip
"""Columns of `Audit.plans`."""

HOLDS, HOLDS_IN_RANGE, HOLDS_IF_INDEPENDENT = (
    "holds whatever is missing",
    "holds under the stated range",
    "holds if missing and retrieved are independent",
)
REVERSED_IN_RANGE, REVERSED_IF_INDEPENDENT = (
    "reversed under the stated range",
    "reversed if missing and retrieved are independent",
)
HOLDS_IF_FOUND = "holds if no more is missing than was found"
HOLDS_IF_FOUND_AND_INDEPENDENT = f"{HOLDS_IF_FOUND}, and missing and retrieved are independent"
JUDGE_FIRST, OPEN = "open: judge these candidates first", "open"
UNSTATED = "open: no range of the sparsity is stated"
TURNED, CONTRADICTED = "turned by judged answers", "open: judging found more than the stated sparsity allows"

VERDICTS = (
    HOLDS,
    HOLDS_IN_RANGE,
    REVERSED_IN_RANGE,
    HOLDS_IF_INDEPENDENT,
    REVERSED_IF_INDEPENDENT,
    HOLDS_IF_FOUND,
    HOLDS_IF_FOUND_AND_INDEPENDENT,
    JUDGE_FIRST,
    OPEN,
    UNSTATED,
    TURNED,
    CONTRADICTED,
)
"""Verdicts on a pair; docs/understand/audit.md defines them."""

_CLAIMS = {HOLDS: 2, HOLDS_IN_RANGE: 1, REVERSED_IN_RANGE: 1}
_OBSERVED = (TURNED, CONTRADICTED)


def no_stronger(verdict: str, other: str) -> bool:
    """Whether a verdict claims no more than another verdict, which has more judgements or statements.

    A verdict counts by its claim without assumptions that the user did not state: most if the order holds
    whatever is missing, less if it holds or is reversed under the stated range, nothing otherwise. A verdict
    that holds *if* something unstated is true claims nothing, so it is no stronger than open. A verdict from
    the judged answers themselves overrides earlier claims.
    """
    return other in _OBSERVED or _CLAIMS.get(verdict, 0) <= _CLAIMS.get(other, 0)


@dataclass(frozen=True, eq=False)
class Audit:
    """Conclusions from ranks on an incomplete graph.

    Attributes:
        models: one row for each model and metric, best first: its value with an interval over queries; the
            strength and the full-test metric that it implies in the middle of the stated range, with their
            ends over the range; and the share of the range under which the value is impossible (`refuted`).
            Implied numbers are null if no sparsity is stated, if judgements show only a lower bound, or if
            the value is impossible.
        pairs: one row for each pair, the better model first: the observed difference (above 0 if the first is
            better, also for a metric of which smaller is better) and its test; `certified`, a lower bound of
            the missing answers that reverse the order (null if no number does); `demonstrated`, the size of
            an example found that reverses it (null if none was found); the smallest and largest probability
            over the stated range that the first is better on the full test; the least sparsity and the least
            difference of correlations that break the order (null if none of the grid does); the queries
            required; the verdict.
        grid: strength and full-test metric implied at each sparsity of a grid, with intervals, at the middle
            of the stated correlations (0 by default).
        box: probability that the first of each pair is better on the full test, at each sparsity of the grid
            and difference of correlations, second minus first; null where it is not feasible.
        facts: answers that would reverse the order of a pair if they were true: a sheet to judge first.
        power: probability that so many queries show the wrong order of a pair, if the observed difference is
            the true one.
        weights: queries that usual metrics and the best weight of each focus require to show that the first
            of each pair is ahead (`best_weight_of`). `held_out` scores a weight on queries that it was not
            fitted on. Null where the second is ahead.
        judged: estimates from judgements for each system, by side and category and for all together (null):
            the sparsity, and how often the system finds missing answers. Empty without judgements.
        plans: expected results of further judgements: for a metric, a design (`unit`) and a number of drawn
            units (`count`), the expected widths of intervals of the completely judged pool (medians over
            systems and over pairs), and the judgements and hours. Empty without lists and a graph.
        assumptions: assumptions by name: `sparsity` and `correlation` ([low, high] or null),
            `sparsity_at_least` (from judging, if it gives only a lower bound; otherwise null),
            `sparsity_from`, `correlation_from`, `unevenness` ([low, high] of the deviations of the logits of
            missing rates), `unevenness_from`, `design` (of the judgements used for estimates, or null),
            `level`, `average`, `ties`, `filtered`, `candidates`, `queries`, `answers`, `lists` (depth or
            null), `plan` (depth of the pool of `plans`, or null), `judged_labels` ([found answers, ruled-out
            candidates] or null), `calibration`, `versions`, `notes` (sentences).
    """

    models: pl.DataFrame
    pairs: pl.DataFrame
    grid: pl.DataFrame
    box: pl.DataFrame
    facts: pl.DataFrame
    power: pl.DataFrame
    weights: pl.DataFrame
    judged: pl.DataFrame
    plans: pl.DataFrame
    assumptions: dict[str, Any]

    def items(self) -> Iterator[tuple[str, pl.DataFrame]]:
        """Name and frame of each table."""
        names = ("models", "pairs", "grid", "box", "facts", "power", "weights", "judged", "plans")
        return ((name, getattr(self, name)) for name in names)

    def plot(
        self,
        *,
        parts: str | Sequence[str] | None = None,
        metric: str | None = None,
        average: str | None = None,
        pair: tuple[str, str] | None = None,
    ) -> "matplotlib.figure.Figure":
        """Figure of the audit: leaderboard, implied values by sparsity, and the map of a pair.

        Arguments and errors are the same as in `owkg.plots.audit_figure`. By default all parts are drawn.
        """
        from owkg.plots.audits import PARTS, audit_figure

        chosen = PARTS if parts is None else parts
        return audit_figure(self, parts=chosen, metric=metric, average=average, pair=pair)

    def payload(self) -> dict[str, Any]:
        """Models, pairs, judgements, plans and assumptions as JSON holds them."""
        return {
            "models": [
                {name: row[name] for name in ("model", "metric", "average", "value", "ci_low", "ci_high")}
                | {
                    name: _interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
                    for name in ("strength", "full")
                }
                | {"refuted": row["refuted"]}
                for row in self.models.iter_rows(named=True)
            ],
            "pairs": [
                {
                    name: row[name]
                    for name in ("first", "second", "metric", "average", "difference", "p_value")
                }
                | {"breakdown": {name: row[name] for name in ("certified", "demonstrated", "share", "gamma")}}
                | {"probability": {"low": row["probability_low"], "high": row["probability_high"]}}
                | {
                    name: row[name]
                    for name in ("breakdown_sparsity", "breakdown_correlation", "required_queries", "verdict")
                }
                for row in self.pairs.iter_rows(named=True)
            ],
            **({"judged": self.judged.to_dicts()} if len(self.judged) else {}),
            **({"plans": self.plans.to_dicts()} if len(self.plans) else {}),
            "assumptions": self.assumptions,
        }

    def __repr__(self) -> str:
        tables = (f"{name}:\n{frame}" for name, frame in (("models", self.models), ("pairs", self.pairs)))
        return "\n".join([*tables, f"assumptions: {self.assumptions}"])

    def _repr_html_(self) -> str:
        tables = (("models", self.models), ("pairs", self.pairs))
        shown = "".join(f"<h4>{name}</h4>{frame._repr_html_()}" for name, frame in tables)
        return f"{shown}<p>Assumptions: {self.assumptions}</p>"


def metric_name(metric: str, average: str) -> str:
    """Name of a metric averaged over answers, or over queries of each query's mean."""
    return f"query-averaged {metric}" if average == "queries" else metric


def verdict_in_words(verdict: str, refuted: float) -> str:
    """Verdict, with the share of the stated range under which the values are impossible."""
    of_range = verdict in VERDICTS[1:5] and refuted > 0
    return f"{verdict}, {refuted:.0%} of the range impossible" if of_range else verdict


def _interval(value: float | None, low: float | None, high: float | None) -> dict[str, float | None]:
    return {"value": value, "low": low, "high": high}

"""What an audit found, as frames, with the assumptions that it rests on."""

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
    TURNED,
    CONTRADICTED,
)
"""Of a pair; docs/understand/audit.md defines them."""

_CLAIMS = {HOLDS: 2, HOLDS_IN_RANGE: 1, REVERSED_IN_RANGE: 1}
_OBSERVED = (TURNED, CONTRADICTED)


def no_stronger(verdict: str, other: str) -> bool:
    """Whether a verdict claims no more than another one, which has more judgements or statements.

    A verdict counts by what it claims without an assumption that nobody stated: most if the order holds
    whatever is missing, less if it holds or is reversed under the stated range, nothing otherwise. What holds
    *if* something that nobody stated is so claims nothing, and so is no stronger than open. What judging
    shows about its own answers overrides whatever was claimed before.
    """
    return other in _OBSERVED or _CLAIMS.get(verdict, 0) <= _CLAIMS.get(other, 0)


@dataclass(frozen=True, eq=False)
class Audit:
    """What may be concluded from ranks on an incomplete graph.

    Attributes:
        models: of each model and metric its value with interval over queries; and of the stated sparsities
            and correlations the strength and the full-test metric implied, in the middle of the box and the
            ends over it, and the share of the box that the value refutes. These are null where nothing is
            stated or judgements show no more than a lower bound, or where the value refutes it. Best first.
        pairs: of each pair, the better one first: the observed difference (above 0 where the first is better,
            also by a metric that is better small) and its test; how many missing answers turn it (`certified`
            is null where none do, `demonstrated` where none are shown); the smallest and largest probability
            over the box that the first is better on the full test; the least sparsity and the least
            difference of correlations that break it, null where none of the grid does; queries needed;
            verdict.
        grid: the strength and full-test metric implied at each sparsity of a grid, at the middle of the
            correlations that are stated (0 where none are), with intervals.
        box: of each pair, the probability that the first is better on the full test, at each sparsity of the
            grid and difference of correlations, second less first; null where none such is feasible.
        facts: answers that, were they true, turn the order of a pair: a sheet to judge first.
        power: of each pair, how likely so many queries would show the wrong order, if what is observed
            were the truth.
        weights: of each pair, the queries that usual metrics and the best weight of each focus require to
            show that the first is ahead (`best_weight_of`); `held_out` of a weight is on queries that it was
            not fitted on. Null where the second is ahead.
        judged: of each system, side and category, and of all together (null), what judgements say of the
            sparsity and of who finds the missing answers; empty without judgements.
        plans: what further judgements would show: of a metric, a design (`unit`) and a number of drawn units
            (`count`), the expected widths of 95 % intervals of the completely judged pool, medians over
            systems and over pairs, with judgements and hours. Empty without lists and a graph.
        assumptions: what the numbers rest on: `sparsity` and `correlation` ([low, high] or null),
            `sparsity_at_least` (what judging found, where it is no more than a lower bound; else null),
            `sparsity_from`, `correlation_from`, `unevenness` ([low, high] of the deviations of the logits of
            missing rates), `unevenness_from`, `design` (of the judgements that are estimated from, or
            null), `level`, `average`, `ties`, `filtered`, `candidates`, `queries`, `answers`,
            `lists` (depth or null), `plan` (depth of the pool of `plans`, or null),
            `judged_labels` ([found answers, candidates that can be none] or null),
            `calibration`, `versions`, `notes` (sentences).
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
        """(name, frame) of each table."""
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
        """The figure of the audit: leaderboard, implied values by sparsity, and the map of a pair.

        Args and errors are those of `owkg.plots.audit_figure`; by default all parts are drawn.
        """
        from owkg.plots.audits import PARTS, audit_figure

        chosen = PARTS if parts is None else parts
        return audit_figure(self, parts=chosen, metric=metric, average=average, pair=pair)

    def payload(self) -> dict[str, Any]:
        """Models, pairs, judgements and assumptions as JSON holds them."""
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
    """The name of the mean of a metric over answers, or over queries of the mean of each."""
    return f"query-averaged {metric}" if average == "queries" else metric


def verdict_in_words(verdict: str, refuted: float) -> str:
    """A verdict, and of one on a range, which share of the range the values do not allow."""
    of_range = verdict in VERDICTS[1:5] and refuted > 0
    return f"{verdict}, {refuted:.0%} of the range impossible" if of_range else verdict


def _interval(value: float | None, low: float | None, high: float | None) -> dict[str, float | None]:
    return {"value": value, "low": low, "high": high}

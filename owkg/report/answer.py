"""The answer of an audit in plain words: what holds, what to do next, and what to write in a paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.auditing import result
from owkg.auditing.result import Audit
from owkg.report import words
from owkg.report.words import chance_text, estimate_text, number_text, p_said
from owkg.terminal.latex import latex_escaped, tabular

HOLDS, CONDITIONAL, OPEN, REVERSED = "holds", "conditional", "open", "reversed"

KINDS = {
    result.HOLDS: HOLDS,
    result.HOLDS_IN_RANGE: HOLDS,
    result.HOLDS_IF_INDEPENDENT: CONDITIONAL,
    result.HOLDS_IF_FOUND: CONDITIONAL,
    result.HOLDS_IF_FOUND_AND_INDEPENDENT: CONDITIONAL,
    result.REVERSED_IN_RANGE: REVERSED,
    result.REVERSED_IF_INDEPENDENT: REVERSED,
    result.TURNED: REVERSED,
    result.JUDGE_FIRST: OPEN,
    result.OPEN: OPEN,
    result.UNSTATED: OPEN,
    result.CONTRADICTED: OPEN,
}
"""The kind of each verdict, one of four."""

COUNTED = {
    HOLDS: ("holds under your assumptions", "hold under your assumptions"),
    CONDITIONAL: (
        "holds only on a condition that you did not state",
        "hold only on a condition that you did not state",
    ),
    REVERSED: ("is reversed on the complete test", "are reversed on the complete test"),
    OPEN: ("is open", "are open"),
}
"""Predicates of one comparison of a kind, and of several."""

DEFINITIONS = {
    result.HOLDS: (
        "The difference is significant, and more missing answers would be needed to reverse it than your "
        "sparsity allows, or no number of them reverses it. This uses no model of the missing answers."
    ),
    result.HOLDS_IN_RANGE: (
        "The difference is significant, and the first model is better on the complete test with at least the "
        "stated level of probability everywhere in the range you stated."
    ),
    result.REVERSED_IN_RANGE: (
        "Everywhere in the range you stated, the second model is better on the complete test with more than "
        "the stated level of probability."
    ),
    result.HOLDS_IF_INDEPENDENT: (
        "As the verdict on the stated range, but you stated no correlation. owkg assumed that a model "
        "retrieves missing answers as often as known ones."
    ),
    result.REVERSED_IF_INDEPENDENT: (
        "As the verdict on the stated range, but you stated no correlation. owkg assumed that a model "
        "retrieves missing answers as often as known ones."
    ),
    result.HOLDS_IF_FOUND: "The order holds at the sparsity that judging found, which is only a lower bound.",
    result.HOLDS_IF_FOUND_AND_INDEPENDENT: (
        "The order holds at the sparsity that judging found, which is only a lower bound, if a model "
        "retrieves missing answers as often as known ones."
    ),
    result.JUDGE_FIRST: (
        "The difference is not significant, or under your assumptions either model may be ahead on the "
        "complete test; and owkg names missing answers that would reverse the order. Judge these first."
    ),
    result.OPEN: (
        "The difference is not significant, or under your assumptions either model may be ahead on the "
        "complete test."
    ),
    result.UNSTATED: (
        "The difference is significant on the known answers. You stated no range of the sparsity, so owkg "
        "claims nothing about the complete test."
    ),
    result.TURNED: "The answers that judging found put the second model ahead.",
    result.CONTRADICTED: "Judging found more answers than the sparsity you stated allows.",
}
"""Definitions of the verdicts, a sentence or two each."""

GLOSSARY = {
    "best weight": (
        "The weight of ranks that needs the fewest queries to show the order, among the weights that fall "
        "with the rank and look at least as near the top as the stated focus."
    ),
    "complete test": (
        "The test set with all true answers, of which the test at hand is a part. Also: full test."
    ),
    "correlation": (
        "Correlation between being missing from the test and being retrieved by a model. Above 0, the model "
        "retrieves missing answers more often than known ones, so that its score is too low."
    ),
    "equal at correlation gap": (
        "Smallest difference of the correlations of the two models, second minus first, at which both have "
        "the same metric on the complete test, at some sparsity of the stated range."
    ),
    "focus": "How near the top a metric looks; 1 for Hits@1, 0.1 for Hits@10.",
    "gamma": (
        "How much likelier than a candidate that favours the first model a candidate that favours the second "
        "one must be to be a missing answer, so that the order is reversed."
    ),
    "missing to reverse": (
        "Number of missing answers that reverse the order. At least 8: no set of fewer does, whichever they "
        "are; whether 8 can is known only with lists. A range such as 8 to 11: owkg also found a set of 11 "
        "that does."
    ),
    "P(better)": (
        "Probability that the first model is better on the complete test, over the range you stated. "
        "It counts that other queries might have been asked, and the error of the model of missing answers, "
        "as measured on simulated worlds of families whose true answers are all known."
    ),
    "queries to see it": (
        "Number of queries like these that show the right order on the known answers with probability 0.95, "
        "if the observed difference is the true one."
    ),
    "sparsity": (
        "Share of the true answers to the queries that the test lacks. Example: with 300 known and 100 "
        "missing answers the sparsity is 0.25."
    ),
    "strength": (
        "Share of the true answers that a model places above all other candidates, in the model of Yang et "
        "al. (2022)."
    ),
    "sure below sparsity": (
        "Smallest sparsity at which the probability that the first model is better falls below the level. "
        "The order is no longer sure there, but not yet reversed. All possible: it is sure at every sparsity "
        "that the values allow, up to 0.95."
    ),
    "unevenness": (
        "How much the missing rates of queries differ: standard deviation of their logits. With 0, every "
        "answer is equally likely to be missing."
    ),
}
"""Definitions of the terms in the report."""


def legend(audit: Audit) -> list[tuple[str, str]]:
    """Verdicts in an audit with their definitions, as (verdict, definition)."""
    told = set(audit.pairs["verdict"])
    return [(verdict, when) for verdict, when in DEFINITIONS.items() if verdict in told]


def kind_of(verdict: str | None) -> str:
    """Kind of a verdict; open if there is none."""
    return KINDS.get(verdict or "", OPEN)


def is_shown(row: Mapping[str, Any], level: float) -> bool:
    """Whether the queries show the difference of a pair, by its test and by its interval."""
    p, low = row["p_value"], row["ci_low"]
    return p is not None and low is not None and p <= 1 - level and low > 0


def answer(label: str, verdicts: Sequence[str | None]) -> str:
    """One sentence on how many comparisons hold by a metric."""
    if not verdicts:
        return f"By {label}, there is nothing to compare."
    kinds, parts = [kind_of(verdict) for verdict in verdicts], []
    for kind, (one, several) in COUNTED.items():
        if count := kinds.count(kind):
            number = str(count) if parts else f"{count} of {len(kinds)} comparisons"
            number = "the only comparison" if len(kinds) == 1 else number
            parts.append(f"{number} {one if count == 1 else several}")
    return f"By {label}, {', '.join(parts)}."


def answers(audit: Audit) -> list[str]:
    """`answer` for each metric of a prepared audit."""
    return [
        answer(label, audit.pairs.filter(place=place)["verdict"].to_list())
        for place, label in enumerate(words.labels(audit))
    ]


def line(row: Mapping[str, Any], level: float, *, independent: bool = False) -> str:
    """One plain sentence with the verdict on a pair, its condition and its reason.

    Args:
        row: row of prepared `Audit.pairs`.
        level: probability from which an order counts as sure.
        independent: whether the correlation of 0 was assumed. Default False.
    """
    told, text = row["verdict"], reason(row, level, independent=independent)
    if kind_of(told) != CONDITIONAL:
        return text
    conditions = []
    if told != result.HOLDS_IF_INDEPENDENT:
        conditions.append("no more answers are missing than judging found")
    if told != result.HOLDS_IF_FOUND:
        conditions.append("missing and retrieved answers are independent")
    return f"If {' and '.join(conditions)}, {text.removeprefix('Then ')}"


def reason(row: Mapping[str, Any], level: float, *, independent: bool = False) -> str:
    """One plain sentence with the reason of the verdict on a pair, which follows the verdict.

    Args:
        row, level, independent: as for `line`.
    """
    first, second, told = row["first"], row["second"], row["verdict"]
    chance = chance_text(row["probability_low"], row["probability_high"])
    kind = kind_of(told)
    if told is None:
        return "There is no verdict on this pair."
    if told == result.HOLDS:
        if row["certified"] is None:
            return f"{first} stays ahead: no number of missing answers reverses the order."
        return (
            f"{first} stays ahead: at least {row['certified']:,} missing answers would be needed to reverse "
            "the order, more than your sparsity allows."
        )
    if told == result.TURNED:
        return f"{second} is ahead once the judged answers count."
    if told == result.CONTRADICTED:
        return "Judging found more answers than the sparsity you stated allows, so nothing follows from it."
    better = f"{first} is better on the complete test with probability {chance}"
    if row["probability_low"] is None:  # no range, or one without an upper end
        better = f"{first} is better on the complete test with probability {level:g} or more"
    if kind == HOLDS:
        return f"{better}."
    if kind == REVERSED:
        condition = " if missing and retrieved answers are independent" * (
            told == result.REVERSED_IF_INDEPENDENT
        )
        return (
            f"{second} is ahead on the complete test{condition}: {first} is better with probability {chance}."
        )
    if kind == CONDITIONAL:
        return f"Then {better}."
    condition = (
        "missing and retrieved answers are independent"
        if independent
        else "the correlations are in the assumed range"
    )
    if row["difference"] == 0:
        return f"{first} and {second} have the same value."
    if not is_shown(row, level):
        needed = row["required_queries"]
        more = "" if needed is None else f"; about {needed:,.0f} would, if the difference is the true one"
        why = f"These queries do not show the difference ({p_said(row['p_value'])}{more})"
    elif row["probability_low"] is not None:
        part = " in part of the range" * (row["probability_high"] >= level)
        why = f"{better}, which is below {level:g}{part}"
    elif row.get("refuted", 0) >= 1:
        why = "No probability follows, because one of the values is impossible under all of the stated range"
    elif row["breakdown_sparsity"] is None:
        why = f"{better} at every sparsity that these values allow, up to 0.95, if {condition}"
    else:
        lacking = f"{row['breakdown_sparsity']:.1%} of the true answers"
        why = f"{better} if the test lacks less than {lacking}, and if {condition}"
    if told == result.JUDGE_FIRST:
        why += f", and {row['demonstrated']:,} answers that owkg names would reverse the order"
    return f"{why}."


def steps(audit: Audit, place: int) -> list[str]:
    """Next steps for the comparisons by one metric of a prepared audit, the cheapest first."""
    said = audit.assumptions
    level, asked = said.get("level") or 0.95, said.get("queries")
    pairs = audit.pairs.filter(place=place)
    rows = [row for row in pairs.iter_rows(named=True) if kind_of(row["verdict"]) in (OPEN, CONDITIONAL)]
    if not rows:
        lost = max(pairs["refuted"].to_list(), default=0.0)
        impossible = (
            f" Say that {lost:.0%} of the stated range is impossible with these values, or narrow the range."
        )
        return [f"Nothing more is needed: report the result with its assumptions.{impossible * (lost > 0)}"]
    found = []
    judge = sorted(
        (row["demonstrated"], i) for i, row in enumerate(rows) if row["verdict"] == result.JUDGE_FIRST
    )
    if judge:
        count, i = judge[0]
        more = f" The same sheet holds answers for {len(judge) - 1} more of these comparisons." * (
            len(judge) > 1
        )
        found.append(
            f"Judge the {count:,} answers that would put {rows[i]['second']} ahead of {rows[i]['first']}. "
            f"`owkg audit --out DIR` writes them as audit_sheet.tsv; audit again with `--judged DIR`.{more}"
        )
    for row in [row for row in rows if not is_shown(row, level) and row["required_queries"] is not None][:3]:
        needed = row["required_queries"]
        if asked is not None and needed > asked:
            found.append(
                f"Test about {needed:,.0f} queries instead of {asked:,} to show that {row['first']} is "
                f"ahead of {row['second']}, if the observed difference is the true one."
            )
    if said.get("sparsity") is None:
        found.append(
            "State the range of the sparsity that you can support (`--sparsity LOW,HIGH`), or judge a random "
            "sample of queries, which estimates it."
        )
    else:
        low, high = said["sparsity"]
        for row in rows:
            most = row["breakdown_sparsity"]
            if most is not None and low < most < high and is_shown(row, level):
                most = np.floor(100 * most) / 100
                found.append(
                    f"Argue for a sparsity of at most {most:g}, if you can: up to there, {row['first']} "
                    f"is better than {row['second']} with probability {level:g} or more (`--sparsity "
                    f"{low:g},{most:g}`)."
                )
                break
    if any(kind_of(row["verdict"]) == CONDITIONAL for row in rows) and said.get("correlation") is None:
        found.append(
            "State the correlation between missing and retrieved (`--correlation LOW,HIGH`): the verdicts "
            'with "if" assume 0.'
        )
    if said.get("lists") is None:
        found.append(
            "Write the ranked lists of your models (`owkg rank --lists`, `owkg ranks convert --lists`) and "
            "pass them with `--lists` and `--kg`: owkg then names the answers to judge first, and plans a "
            "random sample to judge."
        )
    plans = audit.plans.filter(pl.col("metric").is_in(pairs["metric"].unique().implode()))
    found += [
        f"Judge a random draw (`owkg pool --draw {plan['unit']}:{plan['count']}`): {plan['judgements']:,} "
        f"judgements give {plan['metric']} an interval of width {number_text(plan['width'], 3)}."
        for plan in (plans if len(plans) else audit.plans).sort("judgements").head(1).to_dicts()
    ]
    return found or [
        "More queries or more judgements would decide it; nothing cheaper is known from these files."
    ]


def paper(row: Mapping[str, Any], audit: Audit) -> str:
    """Sentences about a pair for a paper.

    Args:
        row: row of prepared `Audit.pairs`.
        audit: prepared audit.
    """
    said, label = audit.assumptions, row["label"]
    first, second = row["first"], row["second"]
    values = {
        model: estimate_text(*rest)
        for model, *rest in audit.models.filter(place=row["place"])
        .select("model", "value", "ci_low", "ci_high")
        .rows()
    }
    level = 100 * (said.get("level") or 0.95)
    counted = (
        f" on {said['queries']:,} queries with {said['answers']:,} known answers"
        if said.get("queries")
        else ""
    )
    text = (
        f"By {label}, {first} scores {values.get(first, words.NONE)} and {second} "
        f"{values.get(second, words.NONE)}{counted} ({level:g} % intervals over queries; difference "
        f"{estimate_text(row['difference'], row['ci_low'], row['ci_high'])}, {p_said(row['p_value'])}). "
    )
    if row["certified"]:
        text += (
            f"At least {row['certified']:,} missing answers would be needed to reverse this order, "
            "whichever they are. "
        )
    if row["probability_low"] is not None and said.get("sparsity") is not None:
        chance = chance_text(row["probability_low"], row["probability_high"])
        text += (
            f"With {words.sparsity_text(said)} and {words.correlation_text(said, (first, second))}, "
            f"{first} is better on the complete test with probability {chance} under the model of Yang et "
            "al. (2022). "
        )
    version = (said.get("versions") or {}).get("owkg", "")
    return f"{text}Verdict of owkg{' ' * bool(version)}{version}: {words.verdict(row)}."


def leaderboard(audit: Audit, place: int) -> str:
    r"""Leaderboard by one metric of a prepared audit as a LaTeX table with three decimals.

    Names are in small capitals. The document needs `\usepackage{booktabs}`.
    """
    models = audit.models.filter(place=place)
    verdicts = {
        (row["first"], row["second"]): words.verdict(row)
        for row in audit.pairs.filter(place=place).iter_rows(named=True)
    }
    names = models["model"].to_list()
    label = latex_escaped(words.labels(audit)[place])
    implied = models["full"].is_not_null().any()
    heads = ["model", label, *(["complete test"] if implied else []), "against the next model"]
    rows = []
    for i, row in enumerate(models.iter_rows(named=True)):
        following = names[i + 1] if i + 1 < len(names) else None
        cells = [_three(row["value"], row["ci_low"], row["ci_high"])]
        if implied:
            cells.append(_three(row["full"], row["full_low"], row["full_high"]))
        cells.append(latex_escaped(verdicts.get((row["model"], following), "")))
        rows.append([rf"\textsc{{{latex_escaped(row['model'])}}}", *cells])
    return tabular(heads, rows)


def _three(value: float | None, low: float | None, high: float | None) -> str:
    """Number with its interval in LaTeX, with three decimals."""
    if value is None:
        return "--"
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} {{[}}{low:.3f}, {high:.3f}{{]}}"

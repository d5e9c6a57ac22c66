"""Figures of tests of a precision: their course by number of judgements, nested sets, and relations."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from owkg.estimation.acceptance import MOST, allowed_errors, alpha_of, boundary, lower_limits
from owkg.estimation.nested_sets import nested_sizes
from owkg.plots.figure import COLOURS, figure, legend_below

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from owkg.pools.accepting import Accepted

_SEEN, _WANTED = COLOURS[0], COLOURS[1]
_STATES = {"accepted": COLOURS[2], "open": "0.45", "refused": COLOURS[1]}
_RELATIONS = 40  # most relations that are drawn
_FEWEST = 48  # judgements on the axis of a test that has just begun
_AHEAD = 1.25  # of the axis beyond the judgements made so far
_PER_ROW, _LEAST = 0.24, 1.3  # inches


def acceptance_figure(found: "Accepted") -> "matplotlib.figure.Figure":
    """Test of a precision: what was judged, and how far that is from a decision.

    - One set, judged one by one: the number of wrong predictions by number of judgements, with the area in
      which the set is accepted and, if it is near, the number at which it is refused. A second panel has
      the lower confidence limit of the precision, with a line at the wanted precision; the set is accepted
      when the limit reaches this line.
    - Nested sets from a fixed draw: the share of right predictions among the judged ones in each of the ten
      sets, by size of the set. The accepted set is marked.
    - A test by relation: the share of right predictions of each relation among the judged ones, its lower
      limit if the relations are judged one by one, and the state in colour. The 40 relations with most
      predictions are drawn.

    Args:
        found: result of `owkg.accept`.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.
    """
    if found.by is not None:
        return _of_relations(found, found.by)
    if found.method == "hypergeometric":
        return _of_nested(found)
    return _of_set(found)


def _of_set(found: "Accepted") -> "matplotlib.figure.Figure":
    size = len(found.candidates)
    judged = found.candidates.drop_nulls("label").sort("turn")
    wrong = np.cumsum(judged["label"].to_numpy() == 0)
    turns = np.arange(len(wrong) + 1)
    allowed = allowed_errors(found.precision, size)
    # A decision is made within few judgements; plans beyond `MOST` would take long.
    limits = boundary(size, found.precision, level=found.level, most=MOST)
    after = np.arange(1, len(limits) + 1)
    first = int(after[limits >= 0].min(initial=len(limits)))
    most = min(size, int(np.ceil(_AHEAD * max(_FEWEST, first, len(wrong)))))
    with figure(1, 2, (7.6, 3.3)) as (fig, (left, right)):
        reached = limits >= 0
        left.fill_between(
            after, -1, limits, where=reached, step="post", color=_STATES["accepted"], alpha=0.2, lw=0,
            label="enough to accept",
        )  # fmt: skip
        left.step(turns, np.append(0, wrong), where="post", color=_SEEN, lw=1.5, label="wrong predictions")
        highest = max(int(limits[:most].max(initial=0)), found.errors, 3)
        if allowed + 1 <= 1.3 * highest:
            left.axhline(allowed + 1, color=_STATES["refused"], lw=1.2, ls="--", label="refused")
            highest = max(highest, allowed + 1)
        left.set(xlabel="predictions judged", ylabel="wrong ones among them", xlim=(0, most))
        left.set_ylim(-0.05 * highest, 1.1 * highest)
        left.locator_params(axis="y", integer=True)
        lower = lower_limits(size, wrong, 1 / alpha_of(found.level))
        right.plot(
            turns, np.append(0, lower), color=_SEEN, lw=1.5, label=f"{_percent(found.level)} lower limit"
        )
        right.plot(turns[1:], 1 - wrong / turns[1:], color="0.6", lw=1, label="share of right ones")
        _wanted(right, found.precision, "h")
        right.set(xlabel="predictions judged", ylabel="precision of the set", xlim=(0, most), ylim=(0, 1.02))
        _headed(fig, found, f"the best {size:,} predictions")
        legend_below(fig)
        return fig


def _of_nested(found: "Accepted") -> "matplotlib.figure.Figure":
    rows = found.candidates.with_row_index()
    said = rows["label"].to_numpy()
    places = np.flatnonzero(rows["label"].is_not_null())
    sizes = nested_sizes(len(rows))
    counts = np.searchsorted(places, sizes)
    right = np.concatenate([[0], np.cumsum(said[places] == 1)])[counts]
    with figure(1, 1, (5.4, 3.5)) as (fig, panel):
        some = counts > 0
        panel.plot(
            sizes[some], right[some] / counts[some], "o-", color=_SEEN, ms=5, lw=1, label="judged ones"
        )
        if len(found.accepted):
            triple = ["head", "relation", "tail"]
            last = (
                rows.join(found.accepted.select(triple), on=triple, how="semi")["index"].cast(pl.Int64).max()
            )
            panel.axvspan(0, int(str(last)) + 1, color=_STATES["accepted"], alpha=0.2, lw=0, label="accepted")
        _wanted(panel, found.precision, "h")
        panel.set(xlabel="best predictions in the set", ylabel="share of right ones", ylim=(0, 1.02))
        panel.set_xlim(0, 1.02 * len(rows))
        _headed(fig, found, f"nested sets of {len(rows):,} predictions")
        legend_below(fig)
        return fig


def _of_relations(found: "Accepted", table: pl.DataFrame) -> "matplotlib.figure.Figure":
    rows = table.head(_RELATIONS)
    names = rows["relation"].to_list()
    with figure(1, 1, (6.6, _LEAST + _PER_ROW * len(names))) as (fig, panel):
        for at, row in enumerate(rows.iter_rows(named=True)):
            colour = _STATES[row["state"]]
            if row["judged"]:
                share = 1 - row["errors"] / row["judged"]
                if row["lower"] is not None:
                    panel.hlines(at, row["lower"], max(share, row["lower"]), color=colour, lw=1.6)
                panel.plot([share], [at], "o", color=colour, ms=5, label=row["state"])
            text = f"{row['judged']:,} of {row['candidates']:,} judged"
            across: Any = panel.get_yaxis_transform()
            panel.text(1.02, at, text, transform=across, va="center", fontsize=7.5, color="0.3")
        _wanted(panel, found.precision, "v")
        panel.set_yticks(range(len(names)), names)
        panel.set(xlabel="share of right ones among the judged", xlim=(0, 1.02))
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.grid(axis="y", visible=False)
        shown = "" if len(names) == len(table) else f", the {len(names)} with most predictions"
        _headed(fig, found, f"{len(table):,} relations{shown}")
        legend_below(fig, columns=4)
        return fig


def _wanted(panel: "matplotlib.axes.Axes", precision: float, way: str) -> None:
    line = panel.axhline if way == "h" else panel.axvline
    line(precision, color=_WANTED, lw=1.2, ls=":", label=f"wanted precision {precision:g}")


def _headed(fig: "matplotlib.figure.Figure", found: "Accepted", what: str) -> None:
    judged = (
        f"{found.errors:,} of {found.judged:,} judged are wrong" if found.judged else "none is judged yet"
    )
    fig.suptitle(f"{found.state.capitalize()}: {what}; {judged}", fontsize=9.5)


def _percent(level: float) -> str:
    return f"{100 * level:g} %"

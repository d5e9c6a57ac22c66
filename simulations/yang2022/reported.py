"""Reported MRR when facts are missing, against the true MRR of the complete test.

The values are the expectation of Yang et al. (2022), for queries with as many answers as in its Figure 1. Two
models show how a ranking is reversed: one of them retrieves missing answers more often than the answers that
the test knows, which the theory states as a correlation above 0.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg import theory
from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure, label_ends
from owkg.rank_weights import MRR, tie_expectation
from simulations.script import Out, save_figure, save_table
from simulations.yang2022.points import PublishedGrid

SPARSITIES = (0.2, 0.4, 0.6)
_STRENGTHS = np.linspace(0, 1, 101)


class Example(NamedTuple):
    """A model whose point is drawn.

    Attributes:
        name: name of the model.
        strength: probability that it ranks an answer above all candidates that are not answers.
        correlation: correlation between "missing from the test" and "retrieved by the model".
    """

    name: str
    strength: float
    correlation: float


EXAMPLES = (Example("A", 0.65, 0.1), Example("B", 0.6, 0.0))
EXAMPLE_SPARSITY = 0.2
"""Share of missing answers at which the examples are drawn."""


def complete(strength: np.ndarray | float) -> np.ndarray:
    """MRR on the complete test: a positive answer ranks first, and a negative answer ranks at random."""
    grid = PublishedGrid()
    last = np.array([grid.num_entities - grid.num_answers + 1])
    chance = tie_expectation(MRR, np.ones_like(last), last)[0]
    return np.asarray(strength + (1 - np.asarray(strength)) * chance)


def reported(strength: np.ndarray | float, sparsity: float, correlation: float = 0.0) -> np.ndarray:
    """Expected MRR on a test that lacks a share of the answers.

    Args:
        strength: probability that the model ranks an answer above all candidates that are not answers.
        sparsity: share of missing answers, in (0, 1).
        correlation: correlation between "missing" and "retrieved".
    """
    grid = PublishedGrid()
    found = theory.moments(
        MRR,
        strength=strength,
        sparsity=sparsity,
        correlation=correlation,
        num_answers=grid.num_answers,
        num_entities=grid.num_entities,
    )
    return np.asarray(found.expectation)


def run() -> tuple[pl.DataFrame, pl.DataFrame]:
    """(curves, examples): true and reported MRR by sparsity, and for `EXAMPLES`."""
    true = complete(_STRENGTHS)
    curves = pl.concat(
        pl.DataFrame({"strength": _STRENGTHS, "true": true, "reported": reported(_STRENGTHS, s)}).select(
            pl.lit(s).alias("sparsity"), pl.all()
        )
        for s in SPARSITIES
    )
    rows = [
        one._asdict()
        | {
            "sparsity": EXAMPLE_SPARSITY,
            "true": float(complete(one.strength)),
            "reported": float(reported(one.strength, EXAMPLE_SPARSITY, one.correlation)),
        }
        for one in EXAMPLES
    ]
    return curves, pl.DataFrame(rows)


def draw(curves: pl.DataFrame, examples: pl.DataFrame, stem: Path) -> list[Path]:
    """Draws the curves and the line of the complete test, named at their ends, and the two models."""
    with figure(1, 1, (6.4, 4.2)) as (fig, panel):
        panel.plot([0, 1], [0, 1], color="0.25", lw=1.4)
        ends = [(1.0, 1.0, "complete test", "0.25")]
        for colour, ((sparsity,), rows) in zip(
            COLOURS, curves.group_by("sparsity", maintain_order=True), strict=False
        ):
            panel.plot(rows["true"], rows["reported"], color=colour, lw=2)
            ends.append((rows["reported"][-1], rows["true"][-1], f"{sparsity:.0%} missing", colour))
        panel.plot(examples["true"], examples["reported"], "o", color="black", ms=4)
        _enlarged(curves, examples, panel)
        panel.set(xlim=(0, 1), ylim=(0, 1))
        panel.set(xlabel="true MRR (complete test)", ylabel="reported MRR (test with missing answers)")
        panel.set_title("Missing answers lower MRR, and can reverse a ranking", loc="left")
        label_ends(panel, ends, size=9)
        return save_figure(fig, stem)


def _enlarged(curves: pl.DataFrame, examples: pl.DataFrame, panel: Any) -> None:
    """Draws the two models and the curve of their sparsity, enlarged in the empty corner."""
    part = panel.inset_axes((0.05, 0.55, 0.43, 0.38))
    rows = curves.filter(sparsity=EXAMPLE_SPARSITY)
    part.plot(rows["true"], rows["reported"], color=COLOURS[SPARSITIES.index(EXAMPLE_SPARSITY)], lw=2)
    for row in examples.iter_rows(named=True):
        at = row["true"], row["reported"]
        part.plot(*at, "o", color="black", ms=6)
        words: Any = {"ha": "center", "fontsize": 7.5}
        if row["correlation"] > 0:
            text = f"{row['name']}: true {at[0]:.2f}, reported {at[1]:.3f}\nretrieves more of what is missing"
            part.text(0.52, 0.06, text, transform=part.transAxes, va="bottom", **words)
        else:
            text = f"{row['name']}: true {at[0]:.2f}\nreported {at[1]:.3f}"
            part.annotate(text, at, (0, 7), textcoords="offset points", va="bottom", **words)
    x, y = (examples[name].to_numpy() for name in ("true", "reported"))
    part.set(xlim=(x.min() - 0.05, x.max() + 0.05), ylim=(y.min() - 0.035, y.max() + 0.035))
    part.set(xticks=[], yticks=[])
    part.grid(visible=False)
    for side in ("top", "right"):
        part.spines[side].set_visible(True)
    panel.indicate_inset_zoom(part, edgecolor="0.5")


def main(out: Out = Path("out")) -> None:
    """Plots true against reported MRR at 20, 40 and 60 % missing answers, and two reversed models."""
    writable_folder(out)
    curves, examples = run()
    save_table(curves, out / "reported_mrr.csv")
    save_table(examples, out / "reported_mrr_models.csv")
    for row in examples.iter_rows(named=True):
        print(
            f"model {row['name']}, correlation {row['correlation']:g}: true MRR {row['true']:.3f}, "
            f"reported {row['reported']:.3f} at {row['sparsity']:.0%} missing"
        )
    draw(curves, examples, out / "reported_mrr")

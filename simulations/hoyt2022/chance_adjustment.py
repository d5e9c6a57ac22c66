"""Rank metrics against the number of candidates, after Hoyt et al. (2022): the chance level of each metric.

Top: mean and standard deviation of each metric under random ranking, with as many tasks as candidates, and
the published points if OWKG_DATA is set. Bottom: two models whose quality does not depend on the number of
candidates N, measured by the plain metric, its index and its z form. One model knows 30 % of the answers and
guesses the rest: the index of every mean is 0.3, whatever N is. The other has ranks 1 + floor(u^4 N) with u
uniform: only the metrics of relative ranks, mr and gmr, settle; mrr and hits@10 keep falling, because at the
top of the list they count absolute ranks.

    python -m simulations.hoyt2022 chance-adjustment --quick --out out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg.files.storage import writable_folder
from owkg.metrics import Tasks, Ties, evaluate, metric, tasks
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.hoyt2022.published import CLOSED, DRAWS, chance_levels, published_chance
from simulations.script import Out, Quick, save_figure, save_table
from simulations.yang2022.published import agreement

# Each metric, and the name of its index.
METRICS = {
    "mr": "amri",
    "mrr": "amrr",
    "gmr": "agmri",
    "hits@10": "ahits@10",
    "imr": "aimr",
    "hmr": "ahmri",
    "igmr": "aigmr",
}
OF_MODELS = ("mr", "mrr", "hits@10", "gmr")
COLOUR = dict(zip(METRICS, COLOURS, strict=True))
STYLES = {"knows or guesses": "-", "relative rank": "--"}
DOTS: Any = {"ms": 3.4, "mfc": "white", "mew": 0.9}


@dataclass(frozen=True)
class Config:
    """Numbers of candidates, and the two models."""

    largest: int = 10**6
    points: int = 49
    tasks: int = 1000
    known: float = 0.3
    exponent: float = 4.0

    def candidates(self) -> list[int]:
        """Numbers of candidates from 2 on, evenly spaced in their logarithms."""
        return np.unique(np.geomspace(2, self.largest, self.points).round().astype(int)).tolist()


def models(config: Config, candidates: int) -> dict[str, Tasks]:
    """The tasks of both models; a guess is a tie of all candidates, whose exact expectation is taken."""
    n = config.tasks
    known = round(config.known * n)
    low = np.ones(n, np.int64)
    high = np.where(np.arange(n) < known, 1, candidates)
    uniform = (np.arange(n) + 0.5) / n
    relative = 1 + np.floor(uniform**config.exponent * candidates).astype(np.int64)
    known_or_guessed = tasks(low, high, candidates)
    return dict(zip(STYLES, (known_or_guessed, tasks(relative, candidates=candidates)), strict=True))


def run(config: Config) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Chance levels, a row for each metric and N, and values, a row for each model, metric and N."""
    metrics = [metric(name) for m in OF_MODELS for name in (m, METRICS[m], f"z{m}")]
    levels, readings = [], []
    sizes = config.candidates()
    with progress("metrics by candidates", "sizes") as update:
        for done, count in enumerate(sizes, start=1):
            levels.append(chance_levels(METRICS, [count]))
            for model, ranks in models(config, count).items():
                found = evaluate(ranks, metrics, ties=[Ties.EXACT], level=None)[Ties.EXACT]
                readings += [
                    (model, m, count, *(found[name].value for name in (m, METRICS[m], f"z{m}")))
                    for m in OF_MODELS
                ]
            update(done, len(sizes))
    columns = ["model", "metric", "candidates", "plain", "index", "z"]
    # Where every rank is the best one, chance leaves nothing to adjust.
    return pl.concat(levels), pl.DataFrame(readings, schema=columns, orient="row").fill_nan(None)


def compared(published: pl.DataFrame) -> pl.DataFrame:
    """The published levels next to ours with the same number of tasks and candidates."""
    rows = published.filter(pl.col("metric").is_in(list(METRICS)))
    own = chance_levels(METRICS, rows["candidates"].unique().sort().to_list())
    ours = own.rename({"expectation": "own_expectation", "variance": "own_variance"})
    return rows.join(ours, on=["metric", "candidates"], how="left", maintain_order="left")


def print_agreement(table: pl.DataFrame) -> None:
    """Prints how far published and own levels differ: relatively if computed, in standard errors if drawn."""
    several = table.filter(pl.col("candidates") > 1).with_columns(
        mean=(pl.col("expectation") / pl.col("own_expectation") - 1).abs(),
        square=pl.when(pl.col("own_variance") > 0).then(
            (pl.col("variance") / pl.col("own_variance") - 1).abs()
        ),
        z=(pl.col("expectation") - pl.col("own_expectation")) / (pl.col("own_variance") / DRAWS).sqrt(),
    )
    for name in METRICS:
        rows = several.filter(pl.col("metric") == name)
        mean, square = rows["mean"].max(), rows["square"].max()
        if name in CLOSED:
            print(f"published {name}: largest relative difference {mean:.1e}, of variances {square:.1e}")
        elif name == "gmr":
            print(f"published {name}: largest relative difference {mean:.1e}; drawn variances {square:.1%}")
        else:
            print(f"published {name}, drawn: {agreement(rows['z'].to_numpy())}")


def draw(
    levels: pl.DataFrame, readings: pl.DataFrame, published: pl.DataFrame | None, config: Config, stem: Path
) -> None:
    """Top: chance. Bottom: two models of fixed quality, by plain metric, index and z."""
    with figure(2, 3, (11, 6.6)) as (fig, axes):
        _draw_chance(levels, published, *axes[0, :2])
        _draw_models(readings, config, axes[1])
        for panel in (*axes[0, :2], *axes[1]):
            panel.set(xscale="log", xlabel="candidates N", xlim=(1.6, 1.25 * config.largest))
        _draw_legends(axes[0, 2], config, published is not None)
        save_figure(fig, stem)


def _draw_chance(levels: pl.DataFrame, published: pl.DataFrame | None, mean: Any, deviation: Any) -> None:
    for name, colour in COLOUR.items():
        rows = levels.filter(pl.col("metric") == name)
        varies = rows.filter(pl.col("variance") > 0)
        mean.plot(rows["candidates"], rows["expectation"], color=colour, lw=1.2)
        deviation.plot(varies["candidates"], varies["variance"].sqrt(), color=colour, lw=1.2)
        if published is not None:
            points = published.filter(pl.col("metric") == name, pl.col("candidates") > 1)
            varies = points.filter(pl.col("variance") > 0)
            mean.plot(points["candidates"], points["expectation"], "o", color=colour, **DOTS)
            deviation.plot(varies["candidates"], varies["variance"].sqrt(), "o", color=colour, **DOTS)
    mean.set(yscale="log", title="By chance: mean", ylabel="metric")
    deviation.set(yscale="log", title="By chance: standard deviation", ylabel="metric of N tasks")


def _draw_models(readings: pl.DataFrame, config: Config, panels: Any) -> None:
    for model, style in STYLES.items():
        # Lines that coincide are drawn as stripes.
        for name, width in zip(OF_MODELS, (5.0, 3.0, 1.4, 1.2), strict=True):
            rows = readings.filter(pl.col("model") == model, pl.col("metric") == name)
            for panel, form in zip(panels, ("plain", "index", "z"), strict=True):
                lw = width if style == "-" and form == "index" else 1.4
                panel.plot(rows["candidates"], rows[form], style, color=COLOUR[name], lw=lw)
    plain, index, z = panels
    plain.set(yscale="log", title="Same quality, plain", ylabel="metric M")
    index.set(ylim=(-0.03, 1.03), title="Same quality, index", ylabel="(M − E) / (best − E)")
    index.annotate(
        "mr, mrr, hits@10",
        (config.largest, config.known),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    z.set(yscale="log", title=f"Same quality, z of {config.tasks:,} tasks", ylabel="± (M − E) / √V")


def _draw_legends(panel: Any, config: Config, published: bool) -> None:
    from matplotlib.lines import Line2D

    panel.axis("off")
    metrics = [Line2D([], [], color=colour, label=name) for name, colour in COLOUR.items()]
    if published:
        dots = {**DOTS, "color": "0.3", "ls": ""}
        metrics.append(Line2D([], [], marker="o", label="published", **dots))
    first = panel.legend(handles=metrics, ncols=2, loc="upper left", title="metric", alignment="left")
    panel.add_artist(first)
    about = (
        f"knows {config.known:.0%} of the answers,\nguesses the others",
        rf"ranks $1 + \lfloor u^{config.exponent:g}\,N \rfloor$, u uniform",
    )
    lines = [Line2D([], [], color="0.3", ls=s, label=a) for s, a in zip(STYLES.values(), about, strict=True)]
    panel.legend(handles=lines, loc="lower left", title="model of one quality (below)", alignment="left")


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Draws rank metrics against the number of candidates: by chance, and for models of one quality."""
    writable_folder(out)
    published = published_chance()
    config = Config(largest=10**4, points=17) if quick else Config()
    if published is None:
        print("published: not compared, OWKG_DATA is not set")
    else:
        published = compared(published.filter(pl.col("candidates") <= config.largest))
    levels, readings = run(config)
    save_table(levels, out / "chance_adjustment.csv")
    save_table(readings, out / "chance_adjustment_models.csv")
    if published is not None:
        print_agreement(published)
        save_table(published, out / "chance_adjustment_published.csv")
    draw(levels, readings, published, config, out / "chance_adjustment")

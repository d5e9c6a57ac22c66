"""The proof of the audit on closed worlds, on one that is small enough for a test."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import special

from owkg.auditing import calibration
from owkg.simulate import thin
from simulations.closed_world_audit import __main__ as commands
from simulations.closed_world_audit import errors, graphs, judgement, points, uneven, worlds
from simulations.closed_world_audit.points import METRICS, SPARSITIES
from simulations.closed_world_audit.worlds import Setting

REPRODUCTION = Path(__file__).parents[2] / "docs" / "reproduction"
TINY = Setting(5, 60, 1, (0.85, 0.6), 3, ("ComplEx 8", "DistMult 32"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return worlds.trained("tiny", TINY, tmp_path_factory.mktemp("worlds"), quick=True)


@pytest.fixture(scope="module")
def rows(trained):
    return points.points("tiny", trained, TINY.labels).with_columns(group=pl.lit("one"))


@pytest.fixture(scope="module")
def independent(rows):
    return rows.filter(pl.col("missing") == "independent", pl.col("full") > errors.LEAST)


def test_points_are_of_every_checkpoint_and_test(trained, rows):
    (world, recorded), _ = trained
    checkpoints = sum(len(one.step) for _, several in trained for one in several)
    # Two ways in which facts go missing, two averages.
    assert len(rows) == checkpoints * len(SPARSITIES) * 2 * len(METRICS) * 2
    alone = rows.filter(
        missing="independent", metric="mrr", average="answers", asked=0.2, density=world.density
    )
    full = points.joined(world, recorded)
    present = next(points._present(world, recorded[0].score[-1].astype(float), 0.2, 0))[1]
    asked = np.isin(world.query, world.query[present])
    np.testing.assert_allclose(alone["full"], (1 / full.optimistic[:, asked]).mean(1), rtol=1e-6)
    np.testing.assert_allclose(alone["sparse"], (1 / thin(full, present)[0]).mean(1), rtol=1e-6)
    assert alone["sparsity"].unique().item() == pytest.approx((asked & ~present).sum() / asked.sum())


def test_the_table_covers_what_it_was_fitted_to(independent):
    # As if the two worlds were of other families.
    table = errors.calibration(independent.with_columns(setting=pl.col("density").cast(pl.String)))
    assert table.columns == [
        "metric",
        "error",
        "power",
        "most_missing",
        "share",
        "mixture_weight",
        "checkpoints",
    ]
    assert (table["error"] > 0).all()
    assert table["share"].to_list() == list(errors.SHARES) * len(METRICS)
    kept = judgement.coverage(judgement.intervals(independent, table), ("metric",))
    assert kept["metric"].to_list() == list(METRICS)
    assert (kept["held"] > 0.85).all()
    # Errors a hundredth as large hold less: those of the table count, not those of the package.
    small = judgement.intervals(independent, table.with_columns(pl.col("error") / 100))
    assert (judgement.coverage(small, ("metric",))["held"] < kept["held"] - 0.3).all()
    sure = judgement.ordered(independent, table.with_columns(pl.col("error") / 100))
    assert ((sure["said"] - 0.5) >= (judgement.ordered(independent, table)["said"] - 0.5)).all()
    assert sure["said"].mean() > judgement.ordered(independent, table)["said"].mean() + 0.01


def test_orders_are_said_with_the_mixture_that_drew_them():
    rng, chance = np.random.default_rng(1), np.array([0, 0, 0.5, 0, 0.4, 0.1])
    units = rng.uniform(0, 3, 400_000)
    share = rng.choice(errors.SHARES, len(units), p=chance)
    right = (units + share * rng.normal(size=len(units)) > 0).astype(float)
    found = errors._mixture_weights(units, right, np.ones(len(units)))
    assert found.sum() == pytest.approx(1)
    told, said = (
        sum(p * special.ndtr(units / s) for p, s in zip(one, errors.SHARES, strict=True))
        for one in (chance, found)
    )
    # Other shares may give the same probabilities, or nearly.
    np.testing.assert_allclose(said, told, atol=0.005)
    # Nor does another share make the orders likelier (the gradient at the maximum is at most 1).
    for one in errors.SHARES:
        own = special.ndtr(units / one)
        assert (right * own / said + (1 - right) * (1 - own) / (1 - said)).mean() < 1.001


def test_the_law_of_errors_is_found_again(monkeypatch):
    """Errors of .03 times the missing answers to the power .7, of two families of two models."""
    monkeypatch.setattr(errors, "HELD", 0.95)
    rng, parts = np.random.default_rng(2), []
    for setting, lost in product("ab", np.geomspace(0.1, 30, 12)):
        implied = rng.uniform(0.3, 0.7, 2000)
        full = implied + 0.03 * lost**0.7 * 2 * np.sqrt(implied * (1 - implied)) * rng.normal(size=2000)
        told = {"setting": setting, "density": 0.5, "asked": lost, "average": "answers", "lost": lost}
        model = rng.choice(["one", "other"], 2000)
        parts.append(pl.DataFrame(told | {"implied": implied, "full": full, "model": model}))
    error, power = errors._law(pl.concat(parts))
    assert error == pytest.approx(0.03, rel=0.02)
    assert power == pytest.approx(0.7, abs=0.01)


def test_bins_of_differences_keep_their_sums():
    rng = np.random.default_rng(0)
    units, right, weight = rng.exponential(size=5000), rng.uniform(size=5000), rng.uniform(size=5000)
    place, mean, of_bin = errors._binned(units, right, weight)
    assert len(place) < 4000
    assert of_bin.sum() == pytest.approx(weight.sum())
    assert of_bin @ mean == pytest.approx(weight @ right)
    assert of_bin @ place == pytest.approx(weight @ units, rel=1e-4)


def test_the_table_is_made_without_a_table(trained, monkeypatch):
    monkeypatch.setattr(points, "full_metrics", None)
    rows = points.points("tiny", trained, TINY.labels, chosen=False)
    assert set(rows["missing"]) == {"independent"}
    assert "box_low" not in rows.columns


def test_equal_full_metrics_are_right_by_half():
    pairs = pl.DataFrame({"full_first": [0.3, 0.2, 0.2], "full_second": [0.2, 0.3, 0.2]})
    assert errors.is_right(pairs).tolist() == [1, 0, 0.5]


def test_reliability_counts_each_pair_from_both_sides(independent):
    said = judgement.reliability(judgement.ordered(independent))
    mrr = said.filter(metric="mrr")
    assert mrr["pairs"].to_list() == mrr["pairs"].to_list()[::-1]
    np.testing.assert_allclose(mrr["right"] + mrr["right"].reverse(), 1)
    assert mrr["right"][-1] > 0.9


def test_reliability_lets_worlds_count_alike():
    right = np.array([1.0, 1, 1, 1, 0])
    first, second = np.array([*"AABCC"]), np.array([*"BCCDA"])
    names = {"setting": ["a"] * 4 + ["b"], "model_first": first, "model_second": second}
    pairs = pl.DataFrame({"metric": "mrr", "density": 0.5, "said": 0.75, "right": right} | names)
    row = judgement.reliability(pairs).row(1, named=True)
    assert (row["tenth"], row["pairs"], row["said"], row["right"]) == (7, 5, 0.75, 0.5)
    # Right by 1 and 0 in the two worlds; and each configuration in turn left out.
    weight, squares = np.array([1, 1, 1, 1, 4]) / 4, 0.5**2
    for one in "ABCD":
        left = (first != one) & (second != one)
        squares += ((weight * right)[left].sum() / weight[left].sum() - 0.5) ** 2
    assert row["error"] == pytest.approx(np.sqrt(squares))
    # With one world, or a configuration that all pairs have, there is no error.
    for alone in (pairs.head(4), pairs.with_columns(model_first=pl.lit("E"))):
        assert judgement.reliability(alone)["error"].null_count() == 2


def test_errors_of_shares_are_over_settings_and_configurations():
    """Drawn anew with effects of settings and configurations, shares scatter by what is said, or less."""
    rng, told = np.random.default_rng(3), []
    one, other = np.triu_indices(7, 1)
    settings, pair = np.repeat(np.arange(30), len(one)), np.tile(np.arange(len(one)), 30)
    names = {"metric": "mrr", "density": 0.5, "setting": settings.astype(str)}
    names |= {"model_first": one[pair].astype(str), "model_second": other[pair].astype(str)}
    for _ in range(200):
        models = rng.normal(0, 0.06, 7)
        chance = 0.75 + rng.normal(0, 0.03, 30)[settings] + (models[one] + models[other])[pair]
        right = (rng.uniform(size=len(pair)) < chance).astype(float)
        row = judgement.reliability(pl.DataFrame(names | {"said": 0.85, "right": right})).row(1, named=True)
        told.append((row["right"], row["error"]))
    right, error = np.array(told).T
    assert right.std() < np.sqrt((error**2).mean()) < 2 * right.std()
    # Intervals of 95 % hold.
    assert (np.abs(right - right.mean()) < 1.96 * error).mean() > 0.93


def test_equal_implied_metrics_have_no_order(independent):
    tied = independent.with_columns(implied=pl.lit(0.5))
    assert len(errors.pairs_of(independent)) > len(errors.pairs_of(tied)) == 0


def test_groups_have_configurations_of_their_own():
    """So that of each pair one was not fitted to, beside the shared ones a setting has one more at most."""
    seen, names = set(), []
    for settings in worlds.GROUPS.values():
        own = set(worlds.shared(settings))
        assert len(own) >= 3
        assert own.isdisjoint(seen)
        for name, setting in settings.items():
            assert len(worlds.configurations(setting.labels, quick=True)) == len(setting.labels)
            assert len(set(setting.labels)) == len(setting.labels) <= len(own) + 1
            assert all(0 < density < 1 for density in setting.densities)
            seen |= set(setting.labels)
            names.append(name)
    seeds = [setting.seed for settings in worlds.GROUPS.values() for setting in settings.values()]
    assert len(set(names)) == len(names) == len(set(seeds))


def test_boxes_about_the_true_correlation(rows):
    told = judgement.boxed(rows.filter(pl.col("missing") == "chosen", pl.col("full") > errors.LEAST))
    boxes = judgement.of_boxes(told)
    assert boxes["metric"].to_list() == list(METRICS)
    assert (boxes["held"] >= boxes["held_if_taken_as_independent"] - 0.02).all()
    assert (boxes["refuted"] < 0.5).all()


def test_certificates_hold_and_are_put_to_the_test(trained):
    (world, recorded), _ = trained
    told = judgement.certificates(world, recorded)
    assert set(told["way"]) == {"random", "worst"}
    assert len(told.filter("covered")) > 0
    assert told.filter("covered")["reversed"].sum() == 0
    assert told.filter(~pl.col("covered"))["reversed"].sum() > 0


def test_a_scheduler_that_does_not_answer_leaves_no_world(tmp_path, monkeypatch):
    monkeypatch.setattr("owkg.train.workers.TIMEOUT_S", 1)
    with pytest.raises(ValueError, match="scheduler"):
        commands.check(out=tmp_path, scheduler="tcp://127.0.0.1:1")
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_refused(capsys):
    assert commands.main(["check", "--out", ""]) == 2
    assert capsys.readouterr().err.endswith("--out is empty; is a shell variable unset?\n")


def test_published_worlds_are_missed_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    def stop(*_):
        raise ValueError("training")

    monkeypatch.setattr(commands, "all_trained", stop)
    monkeypatch.delenv("OWKG_DATA", raising=False)
    with pytest.raises(ValueError, match="training"):
        commands.check(out=tmp_path)
    assert "OWKG_DATA is not set: the published worlds are left out" in capsys.readouterr().out
    monkeypatch.setenv("OWKG_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="OWKG_DATA"):
        commands.check(out=tmp_path)


def test_coverage_says_to_which_side_intervals_miss():
    full, held = pl.Series([0.5, 0.6, 0.2, 0.4]), [True, False, False, True]
    rows = pl.DataFrame({"metric": "mrr", "full": full, "implied": 0.4, "held": held, "width": 0.2})
    (row,) = judgement.coverage(rows, ("metric",)).rows(named=True)
    assert (row["checkpoints"], row["held"], row["above"]) == (4, 0.5, 0.25)
    assert row["bias"] == pytest.approx(0.025)


def test_quick_checks_write_their_tables_apart(trained, tmp_path, monkeypatch):
    """The whole command, on one world under the names of two groups of two settings."""
    two = {"first": TINY, "second": TINY._replace(labels=("one", "other"))}
    groups = {group: {f"{group} {i}": setting for i in range(2)} for group, setting in two.items()}
    monkeypatch.setattr(commands, "GROUPS", groups)
    monkeypatch.setattr(points, "SPARSITIES", (0.2, 0.5))
    given = [
        (group, name, setting.labels, trained[:1])
        for group, settings in groups.items()
        for name, setting in settings.items()
    ]
    monkeypatch.setattr(commands, "all_trained", lambda *_: iter(given))
    monkeypatch.delenv("OWKG_DATA", raising=False)
    commands.check(out=tmp_path, quick=True)
    assert [path.name for path in tmp_path.iterdir()] == ["closed_worlds_quick"]
    tables = {path.stem: pl.read_csv(path) for path in (tmp_path / "closed_worlds_quick").iterdir()}
    assert set(tables) == {f"audit_{name}" for name in ("coverage", "intervals", "probabilities", "boxes")}
    whole = tables["audit_intervals"].filter(worlds="all worlds")
    assert whole["metric"].to_list() == list(METRICS)
    assert whole["checkpoints"].sum() == tables["audit_coverage"]["checkpoints"].sum()
    assert set(tables["audit_probabilities"]["group"]) == {"all", "both models new", *groups}


def test_every_tenth_of_the_orders_is_within_three_points():
    orders = pl.read_csv(REPRODUCTION / "audit_probabilities.csv").filter(group="all")
    assert len(orders) == 10 * len(METRICS)
    assert ((orders["said"] - orders["right"]).abs() <= 0.03).all()


def test_intervals_hold_what_they_say():
    kept = pl.read_csv(REPRODUCTION / "audit_coverage.csv")
    held = pl.col("held").dot("checkpoints") / pl.col("checkpoints").sum()
    assert kept.group_by("metric").agg(held=held)["held"].is_between(0.93, 0.98).all()
    by_group = kept.group_by("metric", "group").agg(held=held)
    of_mrr = by_group.filter(metric="mrr")
    assert set(of_mrr["group"]) == {*worlds.GROUPS, "published"}
    assert of_mrr["held"].is_between(0.93, 0.98).all()
    assert by_group["held"].is_between(0.9, 0.995).all()


SHOWN = {"mrr": "MRR", "hits@1": "Hits@1", "hits@10": "Hits@10", "p-mrr@1/2": "p-MRR at 1/2"}


def _kept(name: str) -> pl.DataFrame:
    return pl.read_csv(REPRODUCTION / f"audit_{name}.csv")


def _held() -> pl.Expr:
    return 100 * pl.col("held").dot("checkpoints") / pl.col("checkpoints").sum()


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _rows_of_the_law() -> list[str]:
    law = pl.read_csv(calibration.TABLE).unique("metric", maintain_order=True)
    return [
        _row("error at m = 1", *(f"{x:.3f}" for x in law["error"])),
        _row("power of m", *(f"{x:.2f}" for x in law["power"])),
    ]


def _rows_of_coverage() -> list[str]:
    """Values, and the percentage in their intervals: of all worlds, the four groups, the published ones."""
    rows = []
    for name, words in SHOWN.items():
        own = _kept("coverage").filter(metric=name)
        groups = dict(own.group_by("group").agg(held=_held()).rows())
        cells = (f"{groups[group]:.1f}" if group in groups else "" for group in (*worlds.GROUPS, "published"))
        rows.append(_row(words, f"{own['checkpoints'].sum():,}", f"{own.select(_held()).item():.1f}", *cells))
    return rows


def _rows_by_sparsity() -> list[str]:
    every = _kept("intervals").filter(worlds="generated worlds by sparsity")
    rows = []
    for asked in SPARSITIES:
        mrr, hits = (every.filter(metric=name, asked=asked).row(0, named=True) for name in ("mrr", "hits@10"))
        held = (f"{100 * one['held']:.1f}" for one in (mrr, hits))
        rows.append(_row(asked, *held, f"{mrr['median_width']:.3f}"))
    return rows


def _rows_of_errors() -> list[str]:
    """By metric: median width, full minus implied, share of the misses above, least share of a world."""
    kept = _kept("intervals")
    rows = []
    for name, words in SHOWN.items():
        every, own = (
            kept.filter(metric=name, worlds=which).row(0, named=True)
            for which in ("all worlds", "generated worlds")
        )
        above = 100 * own["above"] / (1 - own["held"])
        least = 100 * _kept("coverage").filter(metric=name)["held"].min()
        rows.append(
            _row(words, f"{every['median_width']:.3f}", f"{own['bias']:+.3f}", f"{above:.0f}", f"{least:.0f}")
        )
    return rows


def _rows_of_orders() -> list[str]:
    whole = _kept("probabilities").filter(pl.col("tenth") >= 5, group="all")
    return [
        _row(words, *(f"{said:.3f}, {right:.3f}" for said, right in own["said", "right"].iter_rows()))
        for name, words in SHOWN.items()
        for own in (whole.filter(metric=name),)
    ]


def _rows_of_boxes() -> list[str]:
    return [
        _row(
            SHOWN[row["metric"]],
            f"{row['checkpoints']:,}",
            f"{100 * row['held_of_all']:.1f}",
            f"{100 * row['held_if_taken_as_independent']:.1f}",
            f"{row['median_width']:.3f}",
            f"{row['rmse']:.3f}",
            f"{row['rmse_if_taken_as_independent']:.3f}",
        )
        for row in _kept("boxes").iter_rows(named=True)
    ]


TABLES = {
    "law": _rows_of_the_law,
    "coverage": _rows_of_coverage,
    "sparsity": _rows_by_sparsity,
    "errors": _rows_of_errors,
    "orders": _rows_of_orders,
    "boxes": _rows_of_boxes,
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_committed_tables(name):
    page = (REPRODUCTION.parent / "evidence" / "calibration.md").read_text(encoding="utf-8")
    assert "\n".join(TABLES[name]()) in page


def test_the_page_says_what_the_tables_show():
    page = " ".join((REPRODUCTION.parent / "evidence" / "calibration.md").read_text(encoding="utf-8").split())
    listed = pl.read_csv(calibration.WORLDS)
    assert f"{len(listed)} worlds of {listed['setting'].n_unique()} sets of generated families" in page
    assert f"The fourth group has {len(listed.filter(group='fourth'))} worlds" in page
    most = pl.read_csv(calibration.TABLE)["most_missing"].max()
    assert f"have m up to {most:.0f}" in page
    orders = _kept("probabilities")
    whole = orders.filter(pl.col("tenth") >= 5, group="all")
    off = (whole["right"] - whole["said"]).abs()
    assert f"All 20 are within 3 points of the truth; the furthest is off by {100 * off.max():.1f}" in page
    below, above = (whole.filter(at)["error"].max() for at in (pl.col("tenth") < 9, pl.col("tenth") == 9))
    assert f"at most {below:.3f} below 0.9 and {above:.3f} above" in page
    assert f"For {((off + 1.96 * whole['error']) > 0.03).sum()} of the 20, it does not exclude" in page
    both = orders.filter(pl.col("tenth") >= 5, group="both models new")
    (beyond,) = both.filter((pl.col("right") - pl.col("said")).abs() > 0.03).rows(named=True)
    beyond_by, error = 100 * (beyond["right"] - beyond["said"]), 100 * beyond["error"]
    assert f"19 of 20 are within 3 points; {SHOWN[beyond['metric']]} from 0.8 to 0.9 is right" in page
    assert f"{beyond_by:.1f} points too often, with an error of {error:.1f}" in page
    upper = orders.filter(tenth=8).with_columns(sure=pl.col("said") > pl.col("right"))
    assert upper.filter(pl.col("group").is_in(["first", "second", "third", "published"]))["sure"].all()
    assert not upper.filter(group="fourth")["sure"].any()
    assert "the first three groups and the published worlds are too sure, and the fourth" in page
    # Of single groups: to which side, and how far.
    single = orders.filter(
        pl.col("tenth").is_between(5, 8), pl.col("group").is_in([*worlds.GROUPS, "published"])
    )
    off = 100 * (single["right"] - single["said"])
    assert off.abs().max() < 8
    assert f"up to {-off.min():.0f} points too sure or up to {off.max():.0f} points too careful" in page
    own = single.filter(group="published")
    last = 100 * (own["said"] - own["right"])
    assert f"right {last.min():.1f} to {last.max():.1f} points less often than predicted" in page
    kept, pooled = _kept("coverage"), _kept("intervals")
    published = kept.filter(group="published", density=0.75).row(0, named=True)
    assert (
        f"{published['median_width']:.3f} wide, and {100 * published['held']:.1f} % of them contain" in page
    )
    dense = {
        row["metric"]: row
        for row in pooled.filter(worlds="generated worlds of density .75").iter_rows(named=True)
    }
    assert f"the MRR intervals are {dense['mrr']['median_width']:.3f} wide" in page
    assert f"{100 * dense['hits@10']['held']:.1f} % of the Hits@10 intervals" in page
    assert dense["mrr"]["median_width"] <= 0.2
    boxes = _kept("boxes")
    assert (boxes["held_of_all"] > 0.975).all()
    assert boxes["refuted"].max() < 0.001
    assert "at most 0.1 % of the values are impossible" in page
    np.testing.assert_allclose(boxes["held_of_all"], boxes["held"] * (1 - boxes["refuted"]), atol=1e-9)


@pytest.mark.parametrize("kind", uneven.KINDS)
def test_uneven_tests_miss_what_they_should(trained, kind):
    """The stated share of the answers to the queries that are asked, by rates that differ as they should."""
    world, recorded = trained[0]
    there = uneven.present(world, recorded[0].score[-1].astype(float), kind, 1.0, 0.3, 0)
    asked = (np.bincount(world.query, there) > 0)[world.query]
    assert (asked & ~there).sum() / asked.sum() == pytest.approx(0.3, abs=0.01)
    size = np.bincount(world.query)[world.query]
    gap = np.log(size[~there]).mean() - np.log(size[there]).mean()
    assert {"larger": gap > 0.1, "smaller": gap < -0.1}.get(kind, True)


def test_intervals_over_a_range_of_rates_are_wider_and_hold(trained):
    world, recorded = trained[0]
    found = uneven.systems(world, recorded)
    there = uneven.present(world, recorded[0].score[-1].astype(float), "query", 1.5, 0.5, 0)
    rows = pl.DataFrame(uneven.measured(world, found, there), infer_schema_length=None).with_columns(
        world=pl.lit("tiny"), missing=pl.lit("query"), deviation=1.5
    )
    if "known_held" not in rows.columns:
        rows = rows.with_columns(known_held=pl.lit(None, pl.Boolean), known_width=pl.lit(None, pl.Float64))
    told = uneven.cells(rows)
    assert (told["width"] >= told["width_even"] - 1e-9).all()
    assert (told["held"] >= 0.9).all()
    assert (told["impossible"] == 0).all()


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_closed_graphs_are_drawn_as_named(name):
    closed = graphs.GRAPHS[name]()
    facts = closed.splits["train"]
    assert len(np.unique(facts, axis=0)) == len(facts)
    sizes = np.unique(facts[:, :2], axis=0, return_counts=True)[1]
    # Pareto numbers of answers have a far longer tail than those of blocks.
    assert (sizes.max() > 12 * np.median(sizes)) == name.startswith("power law")


def test_the_page_has_the_committed_cells_of_uneven_rates():
    table = pl.read_csv(REPRODUCTION / "audit_unevenness.csv", glob=False)
    assert table["impossible"].max() == 0  # as the page says
    page = (REPRODUCTION.parent / "evidence" / "calibration.md").read_text(encoding="utf-8")
    lines = []
    for (_, deviation), own in table.group_by("missing", "deviation", maintain_order=True):
        cells = [
            f"{part['held'].min():.2f} ({part['held_even'].min():.2f})"
            for part in (own.filter(world=world) for world in ("block", "power law", "family"))
        ]
        lines.append(f"{deviation:g} | {' | '.join(cells)} |")
    shown = [
        line.split("|", 2)[2].strip() for line in page.splitlines() if re.search(r"\| \d\.\d\d \(", line)
    ]
    assert shown == lines

"""`owkg metrics` as its users meet it."""

import csv
import io
import json
import re
import shlex

import numpy as np
import polars as pl
import pytest

from owkg.cli.main import app, main
from owkg.kg import KnowledgeGraph, write_labelled
from owkg.metrics import Ties, evaluate, metric, tasks_of
from owkg.metrics.registry import LISTING
from owkg.ranks import annotated, read_ranks, write_ranks

RNG = np.random.default_rng(3)
ENTITIES = tuple(f"e{i:02d}" for i in range(30))
RELATIONS = ("q", "r_1")


def _graph() -> KnowledgeGraph:
    cells = RNG.permutation(30 * 2 * 30)[:300]
    triples = np.stack(np.unravel_index(cells, (30, 2, 30)), axis=1).astype(np.int32)
    return KnowledgeGraph(
        ENTITIES, RELATIONS, {"train": triples[:220], "valid": triples[220:250], "test": triples[250:]}
    )


GRAPH = _graph()


def _table(seed: int, *, tied: bool = True) -> pl.DataFrame:
    """Ranks of the test triples, both sides, with the candidates that the graph gives them."""
    from owkg.ranks import rank_table

    rng = np.random.default_rng(seed)
    test = GRAPH.splits["test"]
    scores = rng.normal(size=(2, len(test), 30))
    if tied:
        scores = np.round(2 * scores)
    tables = [rank_table(GRAPH, scores[i], test, side) for i, side in enumerate(("head", "tail"))]
    return pl.concat(tables).drop("popularity", "relation_popularity", "category")


TABLE = _table(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Rank tables and their graph; the current folder."""
    monkeypatch.chdir(tmp_path)
    write_labelled(GRAPH, tmp_path / "graph")
    write_ranks(TABLE, "ranks.parquet")
    write_ranks(_table(1), "transe.parquet")
    write_ranks(_table(2, tied=False), "complex.csv")
    return tmp_path


@pytest.fixture
def call(call, folder):
    """As `call`, of a line of `owkg metrics`."""
    return lambda line, *more: call("metrics", *shlex.split(line), *more)


def _other(err: str) -> str:
    """What is said beside that the few queries of these tables are few."""
    return "".join(line for line in err.splitlines(True) if "may be too narrow" not in line)


# --- JSON

PROMISED = (
    *("mr", "mrr", "imr", "hmr", "gmr", "igmr", "median_rank", "hits@1", "hits@3", "hits@5", "hits@10"),
    *("amr", "amri", "amrr", "agmri", "ahits@1", "ahits@10", "zmr", "zmrr", "zgmr", "zhits@1", "zhits@10"),
    *("wgmr", "macro-mrr", "macro-hits@1", "macro-hits@10", "macro-map@20", "macro-ndcg@20"),
)


def test_json_is_side_ties_metric_numbers(answer):
    found = answer("ranks.parquet")
    assert list(found) == ["head", "tail", "both"]
    for side in found.values():
        assert list(side) == ["optimistic", "pessimistic", "realistic", "exact"]
        for by_metric in side.values():
            assert set(PROMISED) <= by_metric.keys()
            for name, entry in by_metric.items():
                assert {"value", "expectation", "variance", "ci_low", "ci_high"} <= entry.keys()
                if name != "count":
                    assert entry["ci_low"] <= entry["value"] <= entry["ci_high"], name
                    assert entry["variance"] >= 0
                    assert entry["standard_error"] >= 0


def test_json_numbers_are_those_of_the_library(answer):
    found = answer("ranks.parquet --metric mrr,hits@3,zmr,median_rank --seed 5")
    import jax

    tasks, _ = tasks_of(TABLE)
    names = ("mrr", "hits@3", "zmr", "median_rank")
    expected = evaluate(tasks, [metric(name) for name in names], key=jax.random.key(5))
    for ties in Ties:
        for name in names:
            entry, estimate = found["both"][ties.value][name], expected[ties][name]
            for key in ("value", "expectation", "variance", "ci_low", "ci_high", "standard_error"):
                assert entry[key] == pytest.approx(getattr(estimate, key), rel=1e-12)
    drawn = found["both"]["exact"]["median_rank"]  # few tasks: drawn, so with an error
    assert drawn["expectation_standard_error"] > 0
    assert "expectation_standard_error" not in found["both"]["exact"]["mrr"]


def test_one_side_only(folder, answer):
    write_ranks(TABLE.filter(pl.col("side") == "tail"), "tail.parquet")
    found = answer("tail.parquet --metric mrr")
    assert list(found) == ["tail", "both"]
    assert found["tail"] == found["both"]


def test_pykeen_keys(answer):
    nested, flat = answer("ranks.parquet"), answer("ranks.parquet --json-keys pykeen")
    assert flat["both.realistic.inverse_harmonic_mean_rank"] == nested["both"]["realistic"]["mrr"]["value"]
    assert flat["head.optimistic.hits_at_10"] == nested["head"]["optimistic"]["hits@10"]["value"]
    key = "tail.pessimistic.adjusted_arithmetic_mean_rank_index"
    assert flat[key] == nested["tail"]["pessimistic"]["amri"]["value"]
    assert all(re.fullmatch(r"(head|tail|both)\.(optimistic|pessimistic|realistic)\.\w+", k) for k in flat)
    assert not [key for key in flat if "probe" in key or "macro" in key]


def test_several_files_give_a_row_a_model(answer, call):
    found = answer("transe.parquet complex.csv --metric mrr")
    assert list(found) == ["models"]
    assert list(found["models"]) == ["transe", "complex"]
    alone = answer("transe.parquet --metric mrr")
    assert found["models"]["transe"] == alone
    code, out, err = call("transe.parquet complex.csv --metric mrr,amri")
    assert (code, _other(err)) == (0, "")
    assert out.index("transe") < out.index("complex")
    assert f"{alone['both']['realistic']['mrr']['value']:.4f}" in out


def test_a_model_column_names_the_models(folder, answer):
    both = pl.concat([_table(seed).with_columns(model=pl.lit(f"m{seed}")) for seed in (1, 2)])
    write_ranks(both, "both.parquet")
    found = answer("both.parquet --metric mrr")
    assert list(found["models"]) == ["m1", "m2"]
    assert found["models"]["m1"] == answer("transe.parquet --metric mrr")


def test_two_files_with_one_model_are_refused(folder, refused):
    write_ranks(TABLE.with_columns(model=pl.lit("m")), "one.parquet")
    write_ranks(TABLE.with_columns(model=pl.lit("m")), "two.parquet")
    err = refused("one.parquet two.parquet")
    assert (
        "two.parquet: the model 'm' is in one.parquet too; tell its runs apart with a column seed in both"
        in err
    )


def _of_seeds(*seeds):
    return pl.concat([_table(seed).with_columns(seed=seed) for seed in seeds])


def test_a_model_with_seeds_is_one_row(folder, done, answer):
    """In one file and in two; rows of seeds as of tables of their own."""
    write_ranks(_of_seeds(1, 2, 3), "m.parquet")
    for seeds in ((1, 2), (3,)):
        write_ranks(_of_seeds(*seeds).with_columns(model=pl.lit("m")), f"m{seeds[0]}.parquet")
    found = answer("m.parquet --metric mrr,hits@10 --by seed")
    both = answer("m1.parquet m3.parquet --metric mrr,hits@10 --by seed")
    assert both == found
    for name in ("mrr", "hits@10"):
        one = found["both"]["realistic"][name]
        each = [found["by"]["seed"][str(seed)]["both"]["realistic"][name] for seed in (1, 2, 3)]
        values = [row["value"] for row in each]
        assert one["value"] == pytest.approx(np.mean(values))
        assert one["seeds"] == 3
        assert one["deviation_over_seeds"] == pytest.approx(np.std(values, ddof=1))
        assert "seeds" not in each[0]
        write_ranks(_table(2), "alone.parquet")
        assert each[1] == answer(f"alone.parquet --metric {name}")["both"]["realistic"][name]
    out = done("m.parquet --metric mrr")
    assert "mean ± deviation over 3 seeds; 95% confidence intervals over queries and seeds" in " ".join(
        out.split()
    )
    out = done("m.parquet transe.parquet --metric mrr --format latex")
    assert r"$\pm$" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("m.parquet --interval bca", "--interval must be analytic if a model has several seeds"),
        ("m.parquet --mean-of-sides", "must have one seed for each model"),
        ("short.parquet", "short.parquet: the seeds must rank the same tasks: seed 2 lacks 1, such as the "),
        (
            "transe.parquet --by seed",
            "--by must name a column of the rank table, got seed, which is missing.",
        ),
        ("m1.parquet m2.parquet", "m2.parquet: seed 2 of the model 'm' is in m1.parquet too."),
    ],
)
def test_what_seeds_cannot_have(folder, refused, line, message):
    write_ranks(_of_seeds(1, 2), "m.parquet")
    write_ranks(_of_seeds(1, 2)[:-1], "short.parquet")
    for name, seeds in (("m1", (1, 2)), ("m2", (2, 3))):
        write_ranks(_of_seeds(*seeds).with_columns(model=pl.lit("m")), f"{name}.parquet")
    err = refused(line)
    assert message in err


def test_equal_file_names_are_told_apart_by_folder(folder, answer):
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    for place, seed in (("a", 1), ("b", 2)):
        write_ranks(_table(seed), f"{place}/ranks.parquet")
    found = answer("a/ranks.parquet b/ranks.parquet --metric mrr")
    assert list(found["models"]) == ["a/ranks.parquet", "b/ranks.parquet"]


# --- breakdowns


def test_by_relation_category_and_popularity(answer):
    found = answer("ranks.parquet --kg graph --by relation,category,popularity")
    assert list(found["by"]) == ["relation", "category", "popularity"]
    assert list(found["by"]["relation"]) == ["q", "r_1"]
    table = annotated(TABLE, GRAPH)
    for by, groups in found["by"].items():
        for group, sides in groups.items():
            rows = (
                table.filter(pl.col(by) == group)
                if by != "popularity"
                else table.filter(pl.col(by).is_between(*(int(x) for x in f"{group}-{group}".split("-")[:2])))
            )
            tasks, _ = tasks_of(rows)
            value = evaluate(tasks, [metric("mrr")])[Ties.EXACT]["mrr"].value
            assert sides["both"]["exact"]["mrr"]["value"] == pytest.approx(value, rel=1e-12)
    assert "probe@0.5,0.5" in found["both"]["exact"]  # with a graph, popularity is known


def test_tables_by_side_and_ties(call):
    code, out, err = call("ranks.parquet --by side,ties --metric mrr")
    assert (code, _other(err)) == (0, "")
    titles = re.findall(r"side (\w+), (\w+) ranks", out)
    assert titles == [
        (side, ties)
        for side in ("head", "tail", "both")
        for ties in ("optimistic", "pessimistic", "realistic", "exact")
    ]


def test_the_plain_table_says_what_it_shows(call):
    code, out, err = call("ranks.parquet")
    assert (code, _other(err)) == (0, "")
    tied = (TABLE["optimistic"] < TABLE["pessimistic"]).mean()
    assert f"{len(TABLE)} ranking tasks" in out
    assert f"{tied:.1%} tied" in out
    assert "side both, realistic ranks" in out
    assert all(re.search(rf"^ *{re.escape(name)} ", out, re.M) for name in PROMISED)


def test_a_breakdown_without_its_column(refused):
    err = refused("ranks.parquet --by category")
    assert "--by" in err
    assert "--kg" in err


def test_a_graph_with_other_candidates_is_noted(folder, call):
    write_ranks(TABLE.with_columns(candidates=pl.col("candidates") + 1), "off.parquet")
    code, _, err = call("off.parquet --kg graph --metric mrr --format json")
    assert code == 0
    assert f"note: off.parquet: {len(TABLE)} of {len(TABLE)} tasks have another number of candidates" in err
    assert call("ranks.parquet --kg graph --metric mrr")[2] == ""


def test_ranks_without_candidates_have_those_of_the_graph(folder, answer, refused):
    table = _table(2, tied=False)
    write_ranks(table, "whole.parquet")
    columns = ["head", "relation", "tail", "side", "optimistic"]
    table.select(columns).rename({"optimistic": "rank"}).write_csv("alone.csv")
    table.drop("candidates").write_csv("lacking.csv")
    expected = answer("whole.parquet --kg graph --metric amri,zmrr,probe@0.5,0.5")
    assert answer("alone.csv --no-ties --kg graph --metric amri,zmrr,probe@0.5,0.5") == expected
    assert answer("lacking.csv --kg graph --metric amri,zmrr,probe@0.5,0.5") == expected
    err = refused("alone.csv --no-ties --metric amri")
    assert "alone.csv: no column candidates" in err


def test_a_graph_without_the_entities_is_refused(folder, refused):
    write_ranks(TABLE.with_columns(head=pl.lit("nobody")), "other.parquet")
    err = refused("other.parquet --kg graph")
    assert "row 1" in err
    assert "'nobody'" in err


# --- other forms


def test_csv_has_every_number(call, answer):
    code, out, err = call("ranks.parquet --format csv")
    assert (code, _other(err)) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    nested = answer("ranks.parquet")
    assert len(rows) == sum(len(by_metric) for side in nested.values() for by_metric in side.values())
    for row in rows:
        entry = nested[row["side"]][row["ties"]][row["metric"]]
        for key in ("value", "expectation", "ci_low"):
            assert (float(row[key]) if row[key] else None) == entry[key]


def test_latex_is_a_table_of_names_in_small_capitals_and_three_digits(call, answer):
    code, out, err = call("transe.parquet complex.csv --metric mrr,mr,hits@10 --format latex")
    assert (code, _other(err)) == (0, "")
    lines = [line for line in out.splitlines() if line.endswith(r"\\")]
    header, *rows = [[cell.strip() for cell in line.removesuffix(r"\\").split("&")] for line in lines]
    assert header == ["model", "mrr", "mr", "hits@10"]
    values = answer("transe.parquet complex.csv --metric mrr,mr,hits@10")["models"]
    assert [row[0] for row in rows] == [rf"\textsc{{{name}}}" for name in values]
    for row, model in zip(rows, values.values(), strict=True):
        of = model["both"]["realistic"]
        for shown, name in zip(row[1:], header[1:], strict=True):
            value = of[name]["value"]
            digits = f"{value:.3f}" if value < 10 else f"{value:.2f}"
            assert shown.startswith(rf"{digits} {{\scriptsize [")
    assert "textbf" not in out  # without a test nothing is called the best
    assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") == 1


def test_latex_escapes_names(folder, call):
    write_ranks(TABLE, "my_model.parquet")
    out = call("my_model.parquet transe.parquet --metric median_rank --format latex")[1]
    assert r"my\_model" in out
    assert r"median\_rank" in out


def test_the_list_needs_no_file_and_names_work(call):
    code, out, err = call("--list")
    assert (code, _other(err)) == (0, "")
    assert all(entry.name in out for entry in LISTING)
    for entry in LISTING:
        assert metric(entry.example).name
    rows = json.loads(call("--list --format json")[1])
    assert [row["example"] for row in rows] == [entry.example for entry in LISTING]
    assert call("--list --format csv")[1].count("\n") == len(LISTING) + 1


def test_the_list_has_every_default_metric():
    from owkg.metrics import default_metrics

    forms = {re.sub(r"@.*", "", entry.example) for entry in LISTING}
    for one in default_metrics(popularity=True):
        plain = re.sub(r"@.*", "", one.name).removeprefix("macro-")
        stripped = re.sub(r"^[az]", "", plain)
        assert {plain, f"macro-{plain}", stripped, stripped.removesuffix("i")} & forms, one.name


def test_directions_in_the_list():
    for entry in LISTING:
        if entry.better in ("larger", "smaller"):
            assert metric(entry.example).larger_is_better == (entry.better == "larger"), entry.name


def test_the_figure_of_values_shows_what_the_table_does(folder, call, monkeypatch):
    from owkg import plots

    drawn, draw = [], plots.values
    monkeypatch.setattr(plots, "values", lambda table: drawn.append(table) or draw(table))
    for more in ("", " --format json", " --by side --metric mrr"):
        code, _, err = call(f"ranks.parquet --kg graph --figure values.png{more}")
        assert code == 0, err
        assert "wrote values.png" in err
        assert (folder / "values.png").read_bytes().startswith(b"\x89PNG")
    short, everything, by_side = drawn
    assert short["metric"].to_list() == everything["metric"].to_list()
    assert set(everything["side"]) == {"both"}
    assert set(everything["ties"]) == {"realistic"}
    assert set(by_side["side"]) == {"head", "tail", "both"}
    assert "--figure must end in" in call("ranks.parquet --figure values.txt")[2]


def test_figures_do_not_disturb_json(folder, call):
    code, out, err = call("ranks.parquet --kg graph --metric mrr --format json --figures new/pictures")
    assert code == 0, err
    assert json.loads(out)
    made = sorted(path.suffix for path in (folder / "new" / "pictures").iterdir())
    assert {".png", ".pdf"} <= set(made)
    assert err.count("wrote ") == len(made)


# --- options


def test_reweighting(folder, answer, call):
    (folder / "shares.tsv").write_text("q\t3\nr_1\t1\n")
    one = {name: answer(f"{name}.parquet --metric mrr")["tail"]["exact"]["mrr"] for name in ("ranks",)}
    by = answer("ranks.parquet --metric mrr --by relation")["by"]["relation"]
    means = [by[name]["tail"]["exact"]["mrr"]["value"] for name in ("q", "r_1")]
    uniform = answer("ranks.parquet --metric mrr --reweight uniform")["tail"]["exact"]["mrr"]["value"]
    assert uniform == pytest.approx(np.mean(means), rel=1e-12)
    shared = answer("ranks.parquet --metric mrr --reweight shares.tsv")["tail"]["exact"]["mrr"]["value"]
    assert shared == pytest.approx((3 * means[0] + means[1]) / 4, rel=1e-12)
    assert one["ranks"]["value"] != uniform


@pytest.mark.parametrize(
    ("text", "line"),
    [("q\t1\nr_1\n", 2), ("q\t-1\nr_1\t1\n", 1), ("q\t1\nr_1\tnan\n", 2), ("q\t1\nq\t1\n", 2)],
)
def test_malformed_shares_name_file_and_line(folder, refused, text, line):
    (folder / "shares.tsv").write_text(text)
    err = refused("ranks.parquet --reweight shares.tsv")
    assert f"shares.tsv, line {line}:" in err


def test_shares_lack_a_relation(folder, refused):
    (folder / "shares.tsv").write_text("q\t1\n")
    err = refused("ranks.parquet --reweight shares.tsv")
    assert "'r_1'" in err


def test_levels_and_intervals(answer):
    wide, narrow = (
        answer(f"ranks.parquet --metric mrr --ci {ci}")["both"]["exact"]["mrr"] for ci in (0.95, 0.5)
    )
    assert wide["ci_low"] < narrow["ci_low"] < narrow["ci_high"] < wide["ci_high"]
    assert wide["standard_error"] == narrow["standard_error"]
    for kind in ("percentile", "bca"):
        entry = answer(f"ranks.parquet --metric mrr --interval {kind} --replicates 400 --seed 1")
        again = answer(f"ranks.parquet --metric mrr --interval {kind} --replicates 400 --seed 1")
        assert entry == again
        entry = entry["both"]["exact"]["mrr"]
        assert entry["ci_low"] < entry["value"] < entry["ci_high"]
        assert entry["ci_low"] != wide["ci_low"]


def test_probe_entities(answer, refused):
    plain = answer("ranks.parquet --metric probe@1,0")["both"]["exact"]["probe@1,0"]["value"]
    fixed = answer("ranks.parquet --metric probe@1,0 --probe-entities 30")["both"]["exact"]["probe@1,0"][
        "value"
    ]
    assert plain != fixed
    err = refused("ranks.parquet --metric probe@1,0 --probe-entities 3")
    assert "--probe-entities" in err


def test_metrics_in_one_option_or_several(answer):
    joined = answer("ranks.parquet --metric mrr,probe@1,0,Hits_at_10,mrr")
    apart = answer("ranks.parquet --metric mrr --metric probe@1,0 --metric hits@10")
    assert joined == apart
    assert list(joined["both"]["exact"]) == ["mrr", "probe@1,0", "hits@10"]


def test_queries_without_one_list_have_no_macro_metrics(folder, call, refused):
    candidates = np.random.default_rng(0).integers(20, 29, len(TABLE))
    table = TABLE.with_columns(candidates=pl.Series(candidates), optimistic=pl.lit(1), pessimistic=pl.lit(2))
    write_ranks(table, "sampled.parquet")
    code, out, err = call("sampled.parquet --format json")
    assert code == 0
    assert "no macro metrics" in err
    assert not [name for name in json.loads(out)["both"]["exact"] if name.startswith("macro")]
    err = refused("sampled.parquet --metric mrr,macro-mrr")
    assert "macro-mrr" in err


# --- bad input: one line, exit code 2, nothing on standard output


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("", ["FILE", "--list"]),
        ("nowhere.parquet", ["nowhere.parquet"]),
        ("graph", ["graph"]),
        ("ranks.parquet --metric mrrr", ["--metric", "mrrr", "mrr"]),
        ("ranks.parquet --metric hits@0", ["hits@0"]),
        ("ranks.parquet --metric probe@1,0.5", ["popularity", "--kg"]),
        ("ranks.parquet --by sides", ["--by", "sides", "relation"]),
        ("ranks.parquet --ci 95", ["--ci", "95"]),
        ("ranks.parquet --ci 0", ["--ci"]),
        ("ranks.parquet --ci nan", ["--ci"]),
        ("ranks.parquet --replicates 1", ["--replicates"]),
        ("ranks.parquet --interval normal", ["normal"]),
        ("ranks.parquet --kg nowhere", ["nowhere"]),
        ("ranks.parquet --reweight nowhere.tsv", ["nowhere.tsv"]),
        ("ranks.parquet --format xml", ["xml"]),
        ("ranks.parquet --figures ranks.parquet", ["ranks.parquet"]),
    ],
)
def test_bad_input_is_one_clear_line(refused, line, parts):
    err = refused(line)
    for part in parts:
        assert part in err


HEADER = "head,relation,tail,side,optimistic,pessimistic,candidates"


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        (["a,r,b,tail,0,1,9"], ["line 2", "optimistic", "0"]),
        (["a,r,b,tail,1,1,9", "a,r,c,tail,3,10,9"], ["line 3", "pessimistic", "10"]),
        (["a,r,b,tail,4,3,9"], ["line 2", "optimistic", "4"]),
        (["a,r,b,tail,1.5,2,9"], ["line 2", "optimistic", "1.5"]),
        (["a,r,b,tail,nan,2,9"], ["line 2", "optimistic"]),
        (["a,r,b,tail,,2,9"], ["line 2", "optimistic"]),
        (["a,r,b,middle,1,2,9"], ["line 2", "side", "middle"]),
        (["a,r,b,tail,1,2"], ["line 2"]),
        ([], ["ranks.csv"]),
    ],
)
def test_bad_tables_name_file_and_line(folder, refused, rows, parts):
    (folder / "ranks.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    err = refused("ranks.csv")
    assert "ranks.csv" in err
    assert all(part in err for part in parts)


@pytest.mark.parametrize("weight", ["nan", "-1", "inf"])
def test_bad_weights(folder, refused, weight):
    (folder / "ranks.csv").write_text(f"{HEADER},weight\na,r,b,tail,1,2,9,{weight}\n")
    err = refused("ranks.csv")
    assert "ranks.csv, line 2: weight" in err


def test_a_missing_column_and_an_empty_file(folder, call, refused):
    (folder / "ranks.csv").write_text("head,relation,tail,side,optimistic,pessimistic\na,r,b,tail,1,2\n")
    err = refused("ranks.csv")
    assert "no column candidates" in err
    (folder / "ranks.csv").write_text("")
    assert call("ranks.csv")[0] == 2


def test_interrupts_are_quiet(folder, call, monkeypatch):
    def stop(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("owkg.metrics.sources.report_and_sizes", stop)
    code, out, err = call("ranks.parquet")
    assert (code, out, err) == (130, "", "owkg: interrupted\n")


EPILOG = next(c.epilog for c in app.registered_commands if c.callback.__name__ == "metrics") or ""
EXAMPLES = [line for line in EPILOG.splitlines() if line.startswith("owkg ")]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(folder, call, example):
    write_ranks(read_ranks("complex.csv").frame, "complex.parquet")
    line = example.removeprefix("owkg metrics ").replace("data/fb15k237", "graph")
    code, out, err = call(line + (" --kg graph" if "probe@0.5,0.5" in line else ""))
    assert code == 0, err
    assert out


# --- published


@pytest.mark.parametrize("name", ["nations", "kinships"])
def test_published_checkpoints_under_pykeens_keys(owkg_data, tmp_path, capsys, name):
    """All published numbers but the adjusted MRR, whose chance level was not exact when it was published."""
    from owkg.kg import read_graph
    from owkg.ranks import rank_table

    graph = read_graph(owkg_data / name)
    with np.load(owkg_data / "checkpoints" / f"{name}_transe.npz", allow_pickle=False) as stored:
        labels = [list(stored[f"{kind}_labels"]) for kind in ("entity", "relation")]
        order = [[own.index(label) for label in of] for own, of in zip(labels, graph[:2], strict=True)]
        entity = stored["entity"][order[0]]
        forward, backward = stored["relation"][order[1]], stored["relation_inverse"][order[1]]
    test = graph.splits["test"]
    head, relation, tail = test.T
    tables = []
    for side, translated in (
        ("head", entity[tail] + backward[relation]),
        ("tail", entity[head] + forward[relation]),
    ):
        scores = -np.abs(translated[:, None] - entity[None]).sum(axis=-1)
        tables.append(rank_table(graph, scores, test, side))
    write_ranks(pl.concat(tables), tmp_path / "ranks.parquet")
    names = "mr,mrr,imr,hmr,gmr,igmr,median,inverse_median_rank,hits@1,hits@3,hits@5,hits@10,amr,amri,amrr"
    names += ",ahits@1,ahits@3,ahits@5,ahits@10,count,variance,standard_deviation,median_absolute_deviation"
    line = f"metrics {tmp_path / 'ranks.parquet'} --metric {names} --format json --json-keys pykeen"
    assert main(shlex.split(line)) == 0
    found = json.loads(capsys.readouterr().out)
    published = json.loads((owkg_data / "checkpoints" / f"{name}_transe.expected.json").read_text())
    compared = 0
    for side, rules in published.items():
        for ties, values in rules.items():
            for key, value in values.items():
                if key == "adjusted_inverse_harmonic_mean_rank":
                    continue
                assert found[f"{side}.{ties}.{key}"] == pytest.approx(value, rel=1e-5), (side, ties, key)
                compared += 1
    assert compared == 9 * 22


# --- data that looks like something else


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        *((label, label) for label in ("[/x]", "[red]s[/red]", "a|b", "ü", "\\")),
        ("ü\u202e", "ü\\u202e"),  # what turns the text behind it
    ],
)
def test_labels_are_shown_as_they_are(folder, call, label, shown):
    write_ranks(TABLE.with_columns(relation=pl.lit(label), model=pl.lit(label)), "odd.parquet")
    code, out, err = call("odd.parquet transe.parquet --by relation --metric mrr")
    assert (code, _other(err)) == (0, "")
    assert out.count(shown) >= 2
    for form in ("json", "csv", "latex"):
        assert call(f"odd.parquet --by relation --metric mrr --format {form}")[0] == 0


def test_latex_of_a_label_with_brackets_is_no_argument(folder, call):
    write_ranks(TABLE.with_columns(model=pl.lit("[2ex]^a~{b}\\")), "odd.parquet")
    out = call("odd.parquet transe.parquet --metric mrr --format latex")[1]
    assert r"\textsc{{[}2ex{]}\textasciicircum{}a\textasciitilde{}\{b\}\textbackslash{}} &" in out


def test_levels_are_shown_as_given(call):
    assert "99.9% confidence intervals" in call("ranks.parquet --metric mrr --ci 0.999")[1]


def test_duplicates_of_the_graph_are_noted(folder, call):
    train = (folder / "graph" / "train.txt").read_text()
    (folder / "graph" / "train.txt").write_text(train + train.splitlines()[0] + "\n")
    code, _, err = call("ranks.parquet --kg graph --metric mrr")
    assert code == 0
    assert err.startswith("owkg: note: ")
    assert "twice" in err or "repeat" in err or "duplicate" in err


def test_a_table_whose_answers_are_not_filtered_from_each_other(folder, call):
    write_ranks(TABLE.with_columns(filtered=pl.lit(False)), "raw.parquet")
    code, out, err = call("raw.parquet --format json")
    assert code == 0
    assert "no macro metrics" in err
    assert not [name for name in json.loads(out)["both"]["exact"] if name.startswith("macro")]
    assert call("raw.parquet --metric macro-map@5")[0] == 2


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("ranks.parquet --metric macro-map@1000000000", ["macro-map", "1,000"]),
        ("ranks.parquet --probe-entities 100000000000", ["--probe-entities", "at most"]),
        ("ranks.parquet --metric power-mean@-1000", ["power-mean@-1000"]),
        ("ranks.parquet --json-keys pykeen", ["--json-keys", "json"]),
        ("ranks.parquet --metric probe@-2,0", ["sharpness", "-2"]),
    ],
)
def test_extremes_are_one_clear_line_too(refused, line, parts):
    err = refused(line)
    assert all(part in err for part in parts)
    assert "--sharpness" not in err


def test_a_deep_cutoff_costs_no_more_than_the_list(answer):
    found = answer("ranks.parquet --metric macro-ndcg@100000000,macro-ndcg@40")["both"]["exact"]
    assert found["macro-ndcg@100000000"] == found["macro-ndcg@40"]


def _of_queries(*answers: int) -> pl.DataFrame:
    """Ranks of queries with so many answers each."""
    rng = np.random.default_rng(4)
    rows = [
        {"head": f"h{query}", "relation": "r", "tail": f"t{answer}", "side": "tail", "candidates": 50}
        for query, count in enumerate(answers)
        for answer in range(count)
    ]
    ranks = rng.integers(1, 50, len(rows))
    return pl.DataFrame(rows).with_columns(optimistic=ranks, pessimistic=ranks)


@pytest.mark.parametrize(
    ("answers", "noted"),
    [
        ([1] * 40, False),
        ([1] * 20, True),  # few
        ([20] + [1] * 60, True),  # one carries a quarter
        ([12] + [1] * 100, True),  # one carries more than a tenth, of more than 30
    ],
)
def test_intervals_that_rest_on_few_queries_are_noted(call, answers, noted):
    write_ranks(_of_queries(*answers), "few.parquet")
    code, _, err = call("few.parquet --metric mrr,hits@10")
    assert code == 0
    weight = np.array(answers)
    effective = weight.sum() ** 2 / np.dot(weight, weight)
    few = f"{len(answers)} queries count as {effective:.1f} of equal weight, fewer than 30"
    heavy = f"one query carries {weight.max() / weight.sum():.0%} of the weight"
    assert ("may be too narrow" in err) == noted
    assert (few in err) == (effective < 30)
    assert (heavy in err) == (weight.max() > 0.1 * weight.sum())


@pytest.mark.parametrize("harder", [False, True])
def test_heavy_queries_that_score_differently_are_noted(call, harder):
    """Of 400 queries, ten have 10 answers: together a fifth of the weight, none of them a tenth."""
    table = _of_queries(*[10] * 10, *[1] * 390)
    heavy = pl.len().over("head") > 1
    ranks = pl.when(heavy & harder).then(50).otherwise(pl.int_range(pl.len()) % 4 + 1)
    write_ranks(table.with_columns(optimistic=ranks, pessimistic=ranks), "heavy.parquet")
    code, _, err = call("heavy.parquet --metric mrr,macro-mrr")
    assert code == 0
    assert ("of the variance of mrr and score differently from others; the intervals may be" in err) is harder


def test_groups_that_rest_on_few_queries_are_counted(call):
    table = _of_queries(*[1] * 80).with_columns(
        relation=pl.when(pl.int_range(pl.len()) < 20).then(pl.lit("few")).otherwise(pl.lit("many"))
    )
    write_ranks(table, "groups.parquet")
    code, _, err = call("groups.parquet --metric mrr --by relation")
    assert code == 0
    assert "1 of 2 groups rest on fewer than 30 effective queries" in err


def test_effective_queries_are_in_the_json(answer):
    write_ranks(_of_queries(3, 1, 1), "few.parquet")
    found = answer("few.parquet --metric mrr,macro-mrr")["tail"]["realistic"]
    assert found["mrr"]["effective_queries"] == pytest.approx(25 / 11)
    assert found["macro-mrr"]["effective_queries"] == pytest.approx(3)


def test_what_has_no_effect_or_is_unknown_is_told(folder, call, refused):
    """Replicates without a bootstrap, shares of other relations, a graph of other data."""
    err = refused("ranks.parquet --replicates 50")
    assert "--replicates has no effect with --interval analytic" in err
    relations = pl.read_parquet(folder / "ranks.parquet")["relation"].unique().to_list()
    shares = "".join(f"{name}\t1\n" for name in [*relations, "other"])
    (folder / "shares.tsv").write_text(shares)
    code, _, err = call("ranks.parquet --reweight shares.tsv")
    assert code == 0
    assert f"1 of {len(relations) + 1} relations with a share are in no rank table, such as 'other'" in err
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "train.txt").write_text("x\ty\tz\n")
    err = refused("ranks.parquet --kg elsewhere")
    assert "ranks.parquet with --kg: " in err
    assert "the graph has no" in err


def test_triples_ranked_by_the_mean_of_both_sides(folder, call, refused):
    code, out, _ = call("ranks.parquet --mean-of-sides --metric mr,mrr --format json")
    found = {row["metric"]: row for row in json.loads(out)["of_triples"]}
    assert code == 0
    assert found["mr"]["of_triples"] == pytest.approx(found["mr"]["of_tasks"])
    assert found["mrr"]["of_triples"] < found["mrr"]["of_tasks"]
    code, out, _ = call("ranks.parquet --mean-of-sides")
    assert (code, "of triples" in out, "hits@10" in out) == (0, True, True)
    for more in (
        "--by side",
        "--reweight uniform",
        "--interval bca",
        "--ci 0.9",
        "--seed 3",
        "--json-keys pykeen",
    ):
        option = more.split()[0]
        assert f"{option} has no effect with --mean-of-sides" in refused(
            f"ranks.parquet --mean-of-sides {more}"
        )
    err = refused("ranks.parquet --mean-of-sides --format csv")
    assert "--format must be table or json with --mean-of-sides, got csv." in err


def test_what_filtered_the_ranks_is_said(call, tmp_path):
    row = {"relation": "r", "side": "tail", "optimistic": 1, "pessimistic": 2, "candidates": 9}
    table = pl.DataFrame([row | {"head": f"h{i}", "tail": "t", "filtered": True} for i in range(40)])
    ranks = tmp_path / "ranks.parquet"
    for about, filtered, said in (
        ({"filter": ["train", "test"]}, True, ", filtered by train, test, 100"),
        (None, True, ", filtered, 100"),
        ({"filter": []}, False, ", raw, 100"),
    ):
        write_ranks(table.with_columns(filtered=pl.lit(filtered)), ranks, about)
        assert said in call(f"{ranks} --metric mrr")[1]
    write_ranks(table.drop("filtered"), ranks)
    assert "filtered" not in call(f"{ranks} --metric mrr")[1]
    write_ranks(table, ranks, {"lists": "partial"})
    assert "holds partial lists" in call(f"{ranks} --metric mrr")[2]

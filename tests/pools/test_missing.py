"""Sparsity from judgements: counts by hand, the published judgements, coverage of the intervals."""

import json

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.judge import qrels_from_graph, write_judgements
from owkg.kg import KnowledgeGraph, write_labelled
from owkg.pools.missing import design_of, missing_share

TRAIN, TEST = [(0, 0, 1), (4, 1, 0)], [(0, 0, 2), (0, 0, 3), (1, 1, 4)]


def graph(train=TRAIN, test=TEST, n=6):
    splits = {"train": np.array(train, np.int32), "test": np.array(test, np.int32)}
    return KnowledgeGraph(tuple("abcdefghij"[:n]), ("r", "s"), splits)


def judgements(rows):
    """Of (query, answer, relevance) on the side tail."""
    parts = [(f"{h}|{r}|?", "tail", h, r, a, g) for h, r, a, g in rows]
    columns = ["query", "side", "entity", "relation", "answer", "relevance"]
    return pl.DataFrame(parts, columns, orient="row")


JUDGED = judgements(
    [
        ("a", "r", "c", 1),  # in the test
        ("a", "r", "e", 1),  # found
        ("a", "r", "f", 0),
        ("a", "r", "b", 1),  # trains
        ("b", "s", "f", 2),  # found
        ("b", "s", "c", -1),  # pooled, not judged
        ("c", "s", "a", 1),  # of no query of the test
    ]
)


def test_by_hand():
    sampled = {"design": "sampled-pool"}
    found = missing_share(JUDGED, graph(), **sampled)
    assert found.select("queries", "known", "found").rows() == [(2, 3, 2)]
    assert found["sparsity_at_least"].to_list() == [2 / 5]
    by = missing_share(JUDGED, graph(), by="relation", **sampled)
    assert by.select("relation", "known", "found").rows() == [("r", 2, 1), ("s", 1, 1)]
    assert missing_share(JUDGED, graph(), by=["relation", "relation"], **sampled).equals(by)
    assert missing_share(JUDGED, graph(), level=2, **sampled)["found"].to_list() == [1]
    # c is judged not relevant to (a, r, ?): it is no known answer any more.
    wrong = JUDGED.with_columns(relevance=pl.when(pl.col("answer") == "c").then(0).otherwise("relevance"))
    assert missing_share(wrong, graph(), **sampled)["known"].to_list() == [2]


@pytest.mark.parametrize(
    ("design", "counts", "limits"),
    [
        (None, (5, 6, 2), (False, False)),  # queries may have been chosen: all of the test count
        ("pool", (5, 6, 2), (False, False)),
        ("budget", (5, 6, 2), (False, False)),
        ("sheet", (5, 6, 2), (False, False)),
        ("sampled-pool", (2, 3, 2), (True, False)),
        ("sampled-budget", (2, 3, 2), (True, False)),
        ("complete", (2, 3, 2), (True, True)),
    ],
)
def test_what_a_design_allows(design, counts, limits):
    whole = JUDGED.filter(pl.col("relevance") >= 0)
    (row,) = missing_share(whole, graph(), design=design).iter_rows(named=True)
    assert (row["queries"], row["known"], row["found"]) == counts
    assert row["sparsity_at_least"] == counts[2] / (counts[1] + counts[2])
    assert (row["ci_low"] is not None, row["ci_high"] is not None) == limits
    # With a candidate that nobody judged no query is known to be complete.
    assert missing_share(JUDGED, graph(), design=design)["ci_high"].item() is None


def test_open_queries_of_a_sample():
    """Nobody has judged the one to b: left out of a pool; within a budget it was not reached, and counts."""
    part = JUDGED.filter((pl.col("entity") == "a") | (pl.col("relevance") < 0))
    found = [missing_share(part, graph(), design=f"sampled-{of}") for of in ("pool", "budget")]
    assert [one.select("queries", "known", "found").row(0) for one in found] == [(1, 2, 1), (2, 3, 1)]


def test_designs_and_samples():
    drawn = judgements([("b", "s", "e", 1)])
    for design, told in (("unknown", "sampled-pool"), ("pool", "sampled-pool"), ("budget", "sampled-budget")):
        assert design_of(design, JUDGED, drawn) == told
    with pytest.raises(ValueError, match="`sample` must be left out if the design is sheet"):
        missing_share(JUDGED, graph(), design="sheet", sample=drawn)
    with pytest.raises(ValueError, match=r"`design` must be one of complete, sampled-pool, .*, got 'whole'"):
        missing_share(JUDGED, graph(), design="whole")


def test_queries_whose_known_answers_are_all_judged_not_relevant_count_by_what_is_found():
    rows = [("b", "s", "e", 0), ("b", "s", "f", 1), ("b", "s", "d", 1), ("a", "r", "e", 1)]
    found = missing_share(judgements(rows), graph(), design="sampled-pool")
    assert found.select("queries", "known", "found").rows() == [(2, 2, 3)]
    assert found["sparsity_at_least"].to_list() == [3 / 5]
    drawn = judgements([("b", "s", "e", 1)])
    assert missing_share(judgements(rows), graph(), sample=drawn)["found"].to_list() == [2]
    with pytest.raises(
        ValueError, match="`qrels` must leave true answers of test, got all judged not relevant"
    ):
        missing_share(judgements([("b", "s", "e", 0), ("b", "s", "f", 0)]), graph(), design="sampled-pool")


def test_triples_count_once():
    whole = graph(test=[*TEST, (0, 0, 4)])
    both = qrels_from_graph(whole, "test")
    assert missing_share(both, graph()).select("known", "found").rows() == [(6, 1)]
    assert missing_share(both, graph(), unit="triple").select("known", "found").rows() == [(3, 1)]


def test_published_judgements(owkg_data):
    """FB-Test-S-C beside FB-Test-S: what judging found of the answers to the sampled queries."""
    whole = owkg.read_graph(owkg_data / "fb15k237")
    entity, relation = ({x: i for i, x in enumerate(names)} for names in (whole.entities, whole.relations))
    sparse, full = (
        np.array(
            [
                (entity[h], relation[r], entity[t])
                for h, r, t in pl.read_csv(
                    owkg_data / "kgc_sparsity" / name, separator="\t", has_header=False, glob=False
                ).iter_rows()
            ],
            np.int32,
        )
        for name in ("fb_test_s.txt", "fb_test_s_c.txt")
    )
    judged = KnowledgeGraph(whole.entities, whole.relations, {"train": whole.splits["train"], "test": sparse})
    qrels = qrels_from_graph(KnowledgeGraph(whole.entities, whole.relations, {"test": full}), "test")
    (row,) = missing_share(qrels, judged, unit="triple", design="sampled-pool").iter_rows(named=True)
    assert (row["known"], row["found"]) == (1023, 1715)
    assert row["sparsity_at_least"] == pytest.approx(0.626, abs=5e-4)
    assert 0.57 < row["ci_low"] < row["sparsity_at_least"]
    of = dict(
        missing_share(qrels, judged, by="category", unit="triple")
        .select("category", "sparsity_at_least")
        .rows()
    )
    assert of == pytest.approx({"1-1": 0, "1-N": 0.5, "N-1": 0.373, "N-N": 0.681}, abs=5e-4)
    # Of the answers to queries, over which metrics average, fewer are missing: a known triple answers two.
    assert missing_share(qrels, judged)["sparsity_at_least"].item() == pytest.approx(0.511, abs=5e-4)


@pytest.mark.parametrize(("queries", "sparsity", "alike"), [(40, 0.3, False), (150, 0.6, True)])
def test_coverage(queries, sparsity, alike):
    """Queries of 1 to 8 answers; where alike, each query has a sparsity of its own about the mean."""
    from owkg.pools.missing import ratio_limits

    rng, held = np.random.default_rng(2), []
    for _ in range(800):
        answers = rng.integers(1, 9, queries)
        own = rng.beta(6 * sparsity, 6 * (1 - sparsity), queries) if alike else sparsity
        found = rng.binomial(answers, own)
        low, high = ratio_limits(found, answers, 0.95)
        held.append(low <= sparsity <= high)
    assert 0.925 < np.mean(held) < 0.985


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "colour"}, "`by` must be of side, category, relation, got colour"),
        ({"split": "dev"}, "`split` must be one of train, test, got 'dev'"),
        ({"unit": "fact"}, "`unit` must be answer or triple, got 'fact'"),
        ({"ci": 95}, "`ci` must be in"),
        ({"level": 0}, "`level` must be"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        missing_share(JUDGED, graph(), **options)


def test_judgements_of_others():
    with pytest.raises(ValueError, match="`qrels` must use labels of the graph, got entity 'z'"):
        missing_share(judgements([("z", "r", "a", 1)]), graph())
    with pytest.raises(ValueError, match="`qrels` must judge queries that test answers, got none"):
        missing_share(judgements([("c", "s", "a", 1)]), graph())


def test_the_truth_of_a_benchmark_is_not_known(tmp_path, capsys):
    """All that `owkg sample` writes is there; judging every query with the full test gives the sparsity."""
    from owkg.cli.main import main

    rng = np.random.default_rng(0)
    rows = sorted({tuple(row) for row in rng.integers((20, 3, 20), size=(900, 3)).tolist()})
    (tmp_path / "facts.tsv").write_text("\n".join(f"e{h}\tr{r}\te{t}" for h, r, t in rows) + "\n")
    world = tmp_path / "world"
    options = ["--density", "0.5", "--min-answers", "1", "--num-queries", "all", "--no-card-figure"]
    assert main(["sample", str(tmp_path / "facts.tsv"), str(world), *options]) == 0
    of = {name: len((world / f"qrels_{name}.txt").read_text().splitlines()) for name in ("sparse", "full")}
    for folder, split in ((world, "test_sparse"), (world / "openke", "test")):
        capsys.readouterr()
        judged = ["missing", str(world / "qrels_full.txt"), "--kg", str(folder), "--design", "complete"]
        assert main([*judged, "--split", split, "--format", "json"]) == 0
        said = json.loads(capsys.readouterr().out)
        (row,) = said["sparsity"]
        assert row["sparsity_at_least"] == pytest.approx(1 - of["sparse"] / of["full"])
        assert f"contain facts that {split} lacks, which do not count as known." in said["notes"][-1]


def test_the_command(tmp_path, capsys):
    from owkg.cli.main import main

    write_labelled(graph(train=[*TRAIN, (5, 1, 5)]), tmp_path / "graph")
    write_judgements(JUDGED, tmp_path / "judged.qrels")
    line = ["missing", str(tmp_path / "judged.qrels"), "--kg", str(tmp_path / "graph")]
    assert main([*line, "--by", "relation,side", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["sparsity"]
    found = {(row["relation"], row["side"]): row["found"] for row in rows}
    assert found == {("r", "head"): 0, ("r", "tail"): 1, ("s", "head"): 0, ("s", "tail"): 1}
    assert main(line) == 0
    shown = capsys.readouterr().out
    assert "Sparsity of test, at least; by answer" in shown
    assert "design: unknown" in shown
    assert main([*line, "--design", "sampled-pool", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["design"], told["sparsity"][0]["ci_high"]) == ("sampled-pool", None)
    assert main([*line, "--design", "all"]) == 2
    assert "--design must be one of complete" in capsys.readouterr().err
    assert main([*line, "--unit", "fact"]) == 2
    assert "--unit must be answer or triple" in capsys.readouterr().err

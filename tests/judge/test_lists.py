"""Lists from score matrices: the best answers as a full sort has them, in Python and as a file."""

import numpy as np
import pytest

from owkg.cli.main import main
from owkg.judge import lists_of, read_runs
from owkg.kg import KnowledgeGraph, write_labelled

N, TRIPLES = 9, 12


def world(seed):
    rng = np.random.default_rng(seed)
    every = np.unique(rng.integers(0, (N, 2, N), (60, 3)), axis=0).astype(np.int32)
    rng.shuffle(every)
    labels = tuple(f"e{i}" for i in range(N))
    splits = {"train": every[TRIPLES + 6 :], "valid": every[TRIPLES : TRIPLES + 6], "test": every[:TRIPLES]}
    return KnowledgeGraph(labels, ("r", "s"), splits), rng.integers(0, 5, (N, 2, N)).astype(np.float32)


def matrix(graph, scores, side):
    test = graph.splits["test"]
    return scores[test[:, 0 if side == "tail" else 2], test[:, 1]]


def by_sorting(graph, scores, side, depth):
    """{query: the answers}, each list sorted as a whole: by score, then by id."""
    known = np.concatenate([graph.splits["train"], graph.splits["valid"]])
    found = {}
    for h, r, t in graph.splits["test"].tolist():
        entity = h if side == "tail" else t
        gone = {
            int(x[2 if side == "tail" else 0])
            for x in known
            if x[1] == r and x[0 if side == "tail" else 2] == entity
        }
        order = sorted(set(range(N)) - gone, key=lambda e: (-scores[entity, r, e], e))[:depth]
        query = f"e{entity}|{'rs'[r]}|?" if side == "tail" else f"?|{'rs'[r]}|e{entity}"
        found[query] = [f"e{e}" for e in order]
    return found


@pytest.mark.parametrize("depth", [1, 4, 100])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_the_best_answers_with_ties(side, depth):
    graph, scores = world(depth)
    run = lists_of(matrix(graph, scores, side), graph, side=side, depth=depth, model="m")
    lists = {query: part["answer"].to_list() for (query,), part in run.group_by("query", maintain_order=True)}
    assert lists == by_sorting(graph, scores, side, depth)
    assert set(run["model"]) == {"m"}


def test_the_file_of_convert(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph, scores = world(0)
    write_labelled(graph, tmp_path / "g")
    both = {side: matrix(graph, scores, side) for side in ("head", "tail")}
    expected = lists_of(both, graph, depth=3, model="mine")
    order = np.random.default_rng(1).permutation(N)
    arrays = {
        "scores": np.concatenate(list(both.values()))[:, order],
        "triples": np.argsort(order)[np.tile(graph.splits["test"], (2, 1))],
        "side": np.repeat(["head", "tail"], TRIPLES),
        "entity_labels": np.array(graph.entities)[order],
        "relation_labels": np.array(graph.relations),
    }
    arrays["triples"][:, 1] = np.tile(graph.splits["test"][:, 1], 2)
    np.savez("mine.npz", **arrays)
    line = "ranks convert mine.npz --kg g --lists mine.run.gz --depth 3"
    assert main(line.split()) == 0
    assert "up to 3 best answers" in capsys.readouterr().out
    found = read_runs(["mine.run.gz"])
    keys = ["query", "score"]  # of equal scores those with the smaller id of the file
    assert found.select(keys).sort(keys).equals(expected.select(keys).sort(keys))
    assert main([*line.split(), "--out", "mine.parquet", "--model", "other"]) == 0
    assert set(read_runs(["mine.run.gz"])["model"]) == {"other"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((2, N))}, r"`scores` must be numbers of shape \(12, 9\)"),
        ({"scores": np.full((TRIPLES, N), np.nan)}, "`scores` must not be NaN, got NaN in row"),
        ({"scores": np.arange(TRIPLES * N).reshape(TRIPLES, N)}, "must be equal in rows of the same query"),
        ({"split": "none"}, "`split` must be one of"),
        ({"side": "relation"}, "`side` must be head or tail"),
        ({"depth": 0}, "`depth` must be a whole number of at least 1"),
        ({"entities": ["a"]}, "entities"),
    ],
)
def test_bad_lists(change, message):
    graph, scores = world(3)
    facts = graph.splits["test"].copy()
    facts[1] = facts[0]
    facts[1, 2] = (facts[0, 2] + 1) % N
    graph = graph._replace(splits=graph.splits | {"test": facts})
    given = {"scores": matrix(graph, scores, "tail")} | change
    with pytest.raises(ValueError, match=message):
        lists_of(given.pop("scores"), graph, **given)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s.npz --lists x.run", "--kg must name the graph"),
        ("s.npz --kg g", "--out must name the rank table to write, or --lists"),
        ("s.npz --kg g --lists x.run --tolerance 0.1", "--tolerance has no effect without --out"),
        ("s.npz --kg g --out x.csv --depth 2", "--depth has no effect without --lists"),
        ("a.run --kg g --lists x.run", "--lists needs score matrices, but a.run is a run"),
        ("s.npz --kg g --lists s.npz", "cannot be written: it is an input"),
    ],
)
def test_bad_lines(line, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph, scores = world(0)
    write_labelled(graph, tmp_path / "g")
    np.savez("s.npz", scores=matrix(graph, scores, "tail"), triples=graph.splits["test"], side="tail")
    (tmp_path / "a.run").write_text("e0|r|? Q0 e1 1 1 m\n")
    assert main(["ranks", "convert", *line.split()]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x.run").exists()

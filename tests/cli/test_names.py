"""Names of systems: by the tags of their files, by their files where tags are the same, by --name."""

import json

import polars as pl
import pytest

from owkg.ranks import write_ranks

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 1\n"
BEST, WORST = (
    f"q1 Q0 {a} 1 9 Tool\nq1 Q0 {b} 2 8 Tool\nq1 Q0 d3 3 1 Tool\n"
    f"q2 Q0 {c} 1 5 Tool\nq2 Q0 d2 2 4 Tool\nq2 Q0 {d} 3 3 Tool\n"
    for a, b, c, d in (("d1", "d2", "d3", "d1"), ("d2", "d1", "d1", "d3"))
)
COMMANDS = {
    "ir": ("--qrels", "topics.qrels", "--metric", "AP"),
    "compare": ("--qrels", "topics.qrels", "--metric", "AP"),
    "stability": ("--qrels", "topics.qrels", "--metric", "AP", "--size", "0.5"),
    "audit": ("--qrels", "topics.qrels", "--metric", "mrr"),
    "pool": ("--depth", "2"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("topics.qrels", QRELS), ("bm25.run", BEST), ("rm3.run", WORST)):
        (tmp_path / name).write_text(text)
    (tmp_path / "both.run").write_text(BEST + BEST.replace("Tool", "Other"))
    row = {"head": "a", "relation": "r", "tail": "b", "side": "tail", "candidates": 9, "model": "m"}
    for name, rank in (("x.parquet", 1), ("y.parquet", 2)):
        ranks = {"optimistic": rank, "pessimistic": rank}
        write_ranks(pl.DataFrame([row | ranks | {"head": head} for head in "acd"]), name)
    return tmp_path


def asked(command, out, *more):
    form = ("--out", out) if command == "pool" else ("--format", "json")
    return (command, "bm25.run", "rm3.run", *COMMANDS[command], *form, *more)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_names_systems(command, folder, call):
    for more, names in (
        ((), ("bm25", "rm3")),
        (("--name", "one, two"), ("one", "two")),
        (("--name", '"one, more",two'), ("one, more", "two")),
    ):
        code, out, err = call(*asked(command, folder / names[0], *more))
        assert code == 0, err
        assert ("these are named by their files, bm25, rm3" in err) == (not more)
        if command == "pool":
            assert json.loads((folder / names[0] / "metadata.json").read_text())["systems"] == list(names)
        elif command != "stability":
            assert all(f'"{name}"' in out for name in names)
            assert "Tool" not in out


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("--name", "one"), "--name must be 2 names, one for each file, got 1: 'one'."),
        (("--name", "a,b", "--name", "c"), "--name must be 2 names, one for each file, got 3: 'a, b, c';"),
        (("--name", "a,a"), "--name must give each file a name of its own, got 'a' twice."),
        (("--name", "a,b,c"), "got 3: 'a, b, c'; put a name that contains a comma in quotation marks."),
        (("--name", "a,"), "--name must be 2 names"),
        (("--name", '"a,b'), "--name must be names separated by commas, got '\"a,b' (unexpected end"),
    ],
)
def test_names_that_do_not_fit(command, names, message, folder, refused):
    assert message in refused(*asked(command, folder / "out", *names))
    assert not (folder / "out").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_one_name_for_a_file_of_several_systems(command, folder, refused):
    line = asked(command, folder / "out", "--name", "a,b")
    shown = refused(*(("both.run" if one == "rm3.run" else one) for one in line))
    assert "both.run: holds 2 systems ('Tool', 'Other'), which cannot all be named 'b'." in shown


def test_models_of_rank_tables(folder, call, refused):
    """Two files of one model are its seeds, unless they are named."""
    for command in ("metrics", "compare"):
        line = (command, "x.parquet", "y.parquet", "--metric", "mrr")
        assert "or make them two models with --name" in refused(*line)
        code, out, err = call(*line, "--name", "first", "--name", "second", "--format", "json")
        assert code == 0, err
        assert '"first"' in out
        assert '"second"' in out
    code, out, _ = call("metrics", "x.parquet", "--name", "alone", "--metric", "mrr", "--format", "csv")
    assert (code, out.splitlines()[1].split(",")[0]) == (0, "alone")


def test_lists_belong_to_systems_by_name(folder, call):
    """By tag, by file, or in the order of the systems, which is noted."""
    (folder / "g").mkdir()
    (folder / "g" / "train.txt").write_text("a\tr\tz\n")
    (folder / "g" / "test.txt").write_text("".join(f"{h}\tr\tb\n" for h in "acde"))
    rows, lists = [], {"x": [], "y": []}
    entities = "abcdez"
    for name, rank in (("x", 1), ("y", 3)):
        for h in "acde":
            listed = [e for e in entities if not (h == "a" and e == "z") and e != "b"]
            listed.insert(rank - 1, "b")
            lists[name] += [f"{h}|r|? Q0 {e} {i} {-i} Tool" for i, e in enumerate(listed, 1)]
            rows.append((name, h, "r", "b", "tail", rank, rank, len(listed)))
    columns = ["model", "head", "relation", "tail", "side", "optimistic", "pessimistic", "candidates"]
    table = pl.DataFrame(rows, columns, orient="row")
    for name in ("x", "y"):
        write_ranks(table.filter(model=name), f"{name}.parquet")
        (folder / f"{name}.run").write_text("\n".join(lists[name]))
    line = ("audit", "x.parquet", "y.parquet", "--kg", "g", "--metric", "mrr", "--lists")
    code, _, err = call(*line, "y.run", "--lists", "x.run")
    assert code == 0, err
    assert "named by their files, y, x" in err
    code, _, err = call(*line, "x.run", "--lists", "y.run", "--name", "first,second")
    assert code == 0, err
    assert "by order: first has 'x', second has 'y'" in err

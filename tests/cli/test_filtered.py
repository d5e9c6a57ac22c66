"""`owkg ranks filtered`: equal to frames, and errors in one line."""

import re

import numpy as np
import polars as pl
import pytest

from owkg.ranks import rank_queries, read_ranks

ENTITIES = tuple("abcdef")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_files_on_the_command_line(tmp_path, monkeypatch, call, suffix):
    """Equal to frames, whatever the tables are written as; times are numbers, open ends blank."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    names = ("tasks", "known", "typed")
    for i in range(6):
        facts = pl.DataFrame(
            {
                "head": rng.choice(ENTITIES, 12),
                "relation": rng.choice(["r", "s"], 12),
                "tail": rng.choice(ENTITIES, 12),
                "time": rng.integers(0, 3, 12),
                "qualifiers": rng.choice(["none", "q1"], 12),
                "from": [None if x > 2 else int(x) for x in rng.integers(0, 4, 12)],
                "to": [None if x > 2 else int(x) + 3 for x in rng.integers(0, 4, 12)],
            }
        )
        tasks = facts[:4].drop("from", "to").with_columns(side=pl.Series(rng.choice(["head", "tail"], 4)))
        scores = rng.integers(0, 4, (4, len(ENTITIES))) / 4
        typed = pl.DataFrame({"entity": list("abcd"), "side": "tail"}).vstack(
            pl.DataFrame({"entity": list("cdef"), "side": "head"})
        )
        for name, table in zip(names, (tasks, facts, typed), strict=True):
            if suffix == "parquet":
                table.write_parquet(f"{name}.parquet")
            else:
                table.write_csv(f"{name}.{suffix}", separator="," if suffix == "csv" else "\t")
        np.savez("scores.npz", scores=scores, entity_labels=np.array(ENTITIES))
        options = [{}, {"key": "time,qualifiers"}, {"during": "time"}][i % 3]
        asked = [part for name, value in options.items() for part in (f"--{name}", value)]
        code, out, err = call(
            "ranks", "filtered", "scores.npz", f"tasks.{suffix}", "--known", f"known.{suffix}", *asked,
            "--candidates-file", f"typed.{suffix}", "--out", "ranks.parquet",
        )  # fmt: skip
        assert code == 0
        assert not err or re.match(
            r"owkg: note: the facts of (no task|only [1-3] of 4 tasks) are in --known", err
        )
        assert out.startswith(f"wrote ranks.parquet: {len(tasks)} ranking tasks, filter known")
        key = options.get("key", "").split(",") if "key" in options else ()
        during = options.get("during")
        expected = rank_queries(
            scores, tasks, ENTITIES, known=facts, key=key, during=during, candidates=typed
        ).frame
        assert read_ranks("ranks.parquet").frame.equals(expected)


def test_2014_is_2014_0_and_07_is_no_7(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("head,relation,tail,side,time,code\na,r,f,tail,2014.0,07\n")
    np.savez("s.npz", scores=np.zeros((1, 6)), entity_labels=np.array(ENTITIES))
    for code, candidates in (("07", 5), ("7", 6)):
        lines = f"head,relation,tail,time,code\na,r,f,2014,07\na,r,b,2014,{code}\na,r,c,2015,07\n"
        (tmp_path / "known.csv").write_text(lines)
        done = call(
            "ranks",
            "filtered",
            "s.npz",
            "tasks.csv",
            "--known",
            "known.csv",
            "--key",
            "time,code",
            "--out",
            "r.csv",
        )
        assert done[0] == 0
        assert read_ranks("r.csv").frame["candidates"].to_list() == [candidates]
    code, _, err = call("ranks", "filtered", "s.npz", "tasks.csv", "--key", "time", "--out", "r.csv")
    assert (code, err) == (
        0,
        "owkg: note: ranks are raw, because without --known no fact is removed from the candidates.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("s.npz tasks.csv --key relation --out r.csv", "--key must not be one of head"),
        (
            "s.npz tasks.csv --known dates.csv --during time --out r.csv",
            "--during must be numbers in all tables",
        ),
        (
            "s.npz tasks.csv --known back.csv --during time --out r.csv",
            "--known must have from at or before to",
        ),
        (
            "s.npz tasks.csv --candidates-file timed.csv --out r.csv",
            "--candidates-file must only have the columns .*; time is",
        ),
        ("no.npz tasks.csv --out r.csv", "No such file or directory: 'no.npz'"),
        ("tasks.csv tasks.csv --out r.csv", "tasks.csv: not a .npz file of scores"),
        ("bare.npz tasks.csv --out r.csv", "bare.npz: not a .npz file of scores: no array entity_labels"),
        ("s.npz tasks.txt --out r.csv", "TASKS must end in .parquet, .csv|must end in .parquet, .csv"),
        ("s.npz hole.csv --out r.csv", "hole.csv, row 1: tail must not be missing"),
        ("s.npz tasks.csv --known tasks.csv --key place --out r.csv", "must have the column place"),
        ("s.npz tasks.csv --known tasks.csv --during time --out r.csv", "--known must have the column from"),
        ("s.npz tasks.csv --key time --during time --out r.csv", "--during has no effect without --known"),
        ("s.npz tasks.csv --tolerance -1 --out r.csv", "tolerance"),
    ],
)
def test_bad_files(tmp_path, monkeypatch, refused, arguments, shown):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.csv").write_text("head,relation,tail,side,time\na,r,f,tail,1\n")
    (tmp_path / "tasks.txt").write_text("head,relation,tail,side,time\na,r,f,tail,1\n")
    (tmp_path / "hole.csv").write_text("head,relation,tail,side,time\na,r,,tail,1\n")
    (tmp_path / "dates.csv").write_text("head,relation,tail,from,to\na,r,b,2014-01-01,2014-12-31\n")
    (tmp_path / "back.csv").write_text("head,relation,tail,from,to\na,r,b,2,1\n")
    (tmp_path / "timed.csv").write_text("entity,time\na,1\n")
    np.savez("s.npz", scores=np.ones((1, 6)), entity_labels=np.array(ENTITIES))
    np.savez("bare.npz", scores=np.ones((1, 6)))
    err = refused("ranks", "filtered", *arguments.split())
    assert pl.Series([err]).str.contains(shown).item(), err
    assert not (tmp_path / "r.csv").exists()

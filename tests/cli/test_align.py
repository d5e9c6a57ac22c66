"""`owkg align` as its users meet it."""

import json

import numpy as np
import pytest

from owkg import align
from owkg.ranks import read_ranks

QUICK = ("--dim", 8, "--steps", 3)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of two small graphs with 40 pairs, in the current folder."""
    monkeypatch.chdir(tmp_path)
    folder, rng = tmp_path / "data", np.random.default_rng(0)
    folder.mkdir()
    for number, first in ((1, 0), (2, 100)):
        ids = range(first, first + 40)
        (folder / f"ent_ids_{number}").write_text("".join(f"{i}\te{i}\n" for i in ids))
        facts = rng.integers(0, 40, (90, 2)) + first
        (folder / f"triples_{number}").write_text(
            "".join(f"{h}\t{i % 3}\t{t}\n" for i, (h, t) in enumerate(facts))
        )
    (folder / "ref_ent_ids").write_text("".join(f"{i}\t{i + 100}\n" for i in range(40)))
    return folder


def test_a_trained_alignment_is_a_rank_table(data, call):
    code, out, _ = call("align", data, "--out", "r.parquet", *QUICK, "--assign", "--name", "mine")
    assert (code, "train pairs 12, test pairs 28" in out, "matched one-to-one" in out) == (0, True, True)
    table = read_ranks("r.parquet")
    assert (len(table), table.about["train_pairs"]) == (56, 12)
    assert set(table.frame["candidates"]) == {28}
    code, out, _ = call("metrics", "r.parquet", "--metric", "amri,mrr", "--by", "side", "--format", "json")
    assert code == 0
    assert call("compare", "r.parquet", "r.parquet")[0] == 2  # both have the model mine


def test_a_share_where_the_training_pairs_are_in_a_file(data, call):
    (data / "sup_ent_ids").write_text((data / "ref_ent_ids").read_text())
    code, _, err = call("align", data, "--train-share", 0.3, "--out", "r.csv")
    assert code == 2
    assert err.startswith("owkg: error: --train-share has no effect on ")


def test_json_and_embeddings_that_are_read_again(data, call):
    options = ("--out", "r.csv", *QUICK, "--save-embeddings", "e.npz", "--format", "json")
    code, out, _ = call("align", data, *options)
    first = json.loads(out)["results"]
    code, out, _ = call(
        "align", data, "--out", "s.csv", "--embeddings", "e.npz", "--format", "json", "--assign"
    )
    again = json.loads(out)
    assert code == 0
    assert [row["both"] for row in again["results"]] == [row["both"] for row in first]
    pairs = align.read_alignment(data)
    embeddings = align.read_entity_embeddings(data.parent / "e.npz", pairs)
    matched = align.assigned(align.similarity_of_pairs(pairs, embeddings))
    assert again["assigned"] == matched.mean()


def test_raw_embeddings_and_a_similarity(data, call):
    assert call("align", data, "--out", "raw.parquet", "--model", "raw", "--dim", 4)[0] == 0
    np.savez("s.npz", similarity=np.eye(40))
    code, out, _ = call("align", data, "--out", "s.parquet", "--matrix", "s.npz", "--format", "json")
    assert (code, json.loads(out)["results"][0]["both"]) == (0, 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "rdgcn"), "--model must be gcn-align or raw, got 'rdgcn'."),
        (("--matrix", "a.npz", "--embeddings", "b.npz"), "--embeddings and --matrix cannot be combined."),
        (("--matrix", "a.npz", "--save-embeddings", "b.npz"), "--save-embeddings has no effect"),
        (("--embeddings", "none.npz"), "none.npz"),
        (("--similarity", "l3"), "--similarity must be one of l1, l2, dot, cosine, got 'l3'."),
        (("--train-share", "1"), "--train-share must be in [0, 1)"),
        (("--margin", "0"), "--margin must be finite and above 0"),
    ],
)
def test_a_bad_option_is_one_line(data, refused, options, message):
    err = refused("align", data, "--out", "r.parquet", *QUICK, *options)
    assert message in err.splitlines()[-1]


def test_an_entity_in_two_pairs_is_refused_unless_it_is_allowed(data, call, refused):
    (data / "ref_ent_ids").write_text("0\t100\n0\t101\n1\t102\n")
    err = refused("align", data, "--out", "r.parquet", *QUICK)
    assert "line 2: the left entity 'e0' is already in a pair in ref_ent_ids, line 1" in err
    assert "which --many-to-many allows" in err
    assert call("align", data, "--out", "r.parquet", "--many-to-many", "--train-share", 0, *QUICK)[0] == 0

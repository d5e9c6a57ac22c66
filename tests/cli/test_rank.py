"""`owkg rank` as its users meet it."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import owkg.evaluation
import owkg.kg
import owkg.train
from owkg.cli.main import main
from owkg.evaluation import ranks
from owkg.files.storage import write_metadata
from owkg.judge.runs import read_runs
from owkg.kg import KnowledgeGraph, read_graph, write_labelled
from owkg.kg.read import Reading
from owkg.models import Trained, model, write_embeddings
from owkg.ranks import read_ranks

ENTITIES, RELATIONS = tuple(f"e{i:02}" for i in range(15)), ("knows", "likes")
MODEL = model("transe", dim=4, norm=2)
PARAMS = MODEL.init(jax.random.key(0), 15, 2)[0]


@pytest.fixture
def graph(tmp_path, monkeypatch):
    """A graph as its folder `graph` is read; `transe.npz` beside it; the current folder holds both."""
    monkeypatch.chdir(tmp_path)
    chosen = np.random.default_rng(0).permutation(15 * 2 * 15)[:170]
    facts = np.stack(np.unravel_index(chosen, (15, 2, 15)), axis=1).astype(np.int32)
    splits = {"train": facts[:120], "valid": facts[120:140], "test": facts[140:]}
    write_labelled(KnowledgeGraph(ENTITIES, RELATIONS, splits), tmp_path / "graph")
    graph = read_graph(tmp_path / "graph")
    labels = {"entities": graph.entities, "relations": graph.relations}
    write_embeddings("transe.npz", Trained(MODEL, PARAMS), **labels)
    facts = owkg.train.facts_checksums(graph)
    noted = {name: {"facts_sha256": facts} for name in ("best", "moved", "other", "fewer")}
    noted |= {"elsewhere": {"facts_sha256": facts | {"valid": "0"}}, "silent": {}}
    for name, content in noted.items():
        Path(name).mkdir()
        write_metadata(Path(name), content | {"sha256": {}})
    run = SimpleNamespace(
        trained=Trained(MODEL, PARAMS), graph_folder=tmp_path / "graph", reading=Reading(), **labels
    )
    asked = []
    loaded = dict.fromkeys(("best", "elsewhere", "silent"), run)
    loaded["moved"] = SimpleNamespace(**vars(run) | {"graph_folder": None})
    loaded["other"] = SimpleNamespace(**vars(run) | {"entities": graph.entities[::-1]})
    seen = owkg.kg.seen_part(graph, graph.entities[2:], graph.relations)
    Path("part").mkdir()
    write_metadata(Path("part"), {"facts_sha256": owkg.train.facts_checksums(seen), "sha256": {}})
    own = {"trained": Trained(MODEL, PARAMS | {"entity": PARAMS["entity"][2:]}), "entities": seen.entities}
    loaded["part"] = SimpleNamespace(**vars(run) | own)
    loaded["fewer"] = SimpleNamespace(**vars(run) | {"relations": graph.relations[:1]})

    def load_run(folder: Path, *, step: int | str = "best"):
        asked.append(step)
        return loaded[folder.name]

    monkeypatch.setattr("owkg.train.scorer.load_run", load_run)
    return graph, asked


@pytest.fixture
def call(call, graph):
    """As `call`, of a line of `owkg rank`."""
    return lambda line, *more: call("rank", *shlex.split(line), *more)


OF_FILE = "--embeddings transe.npz --model transe --norm 2 --kg graph --out new/out.parquet"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("", {}),
        ("--raw", {"filter_splits": []}),
        ("--filter none", {"filter_splits": []}),
        ("--filter ' train, valid '", {"filter_splits": ["train", "valid"]}),
        ("--split valid --sides tail", {"split": "valid", "sides": ["tail"]}),
        ("--tolerance 0.25 --name m --popularity", {"tolerance": 0.25, "name": "m", "popularity": True}),
    ],
)
def test_embeddings(done, graph, line, options):
    out = done(f"{OF_FILE} {line}")
    assert "wrote new/out.parquet: " in out
    assert read_ranks("new/out.parquet").frame.equals(ranks(Trained(MODEL, PARAMS), graph[0], **options))


def test_options_of_the_model(call, graph):
    of_file = OF_FILE.replace("--norm 2", "--option norm=2 --option margin=3.5")
    assert call(of_file)[0] == 0
    scorer = model("transe", dim=4, norm=2, margin=3.5)
    assert read_ranks("new/out.parquet").frame.equals(ranks(Trained(scorer, PARAMS), graph[0]))


def test_the_table_is_that_of_owkg_metrics(call, capsys):
    code, out, _ = call(f"{OF_FILE} --format json")
    assert code == 0
    shown = {row["metric"]: row for row in json.loads(out)["results"]}
    assert main(["metrics", "new/out.parquet", "--format", "json", "--json-keys", "pykeen"]) == 0
    found = json.loads(capsys.readouterr().out)
    keys = {"mrr": "inverse_harmonic_mean_rank", "hits@10": "hits_at_10", "mr": "arithmetic_mean_rank"}
    assert set(shown) == set(keys)
    for name, key in keys.items():
        for side in ("head", "tail", "both"):
            assert shown[name][side] == pytest.approx(found[f"{side}.realistic.{key}"], rel=1e-12)


@pytest.mark.parametrize(
    ("run", "notes"),
    [
        ("best", []),
        ("elsewhere", ["the facts of valid differ from the facts that elsewhere was trained on"]),
        ("silent", ["silent does not record the facts it was trained on"]),
    ],
)
def test_facts_other_than_those_of_the_training_are_noted(call, done, run, notes):
    out = done(f"{run} --out out.csv")
    assert [line for line in out.splitlines() if line.startswith("note:")] == [f"note: {n}" for n in notes]
    assert json.loads(call(f"{run} --out out.csv --format json")[1])["notes"] == notes


def test_a_graph_without_valid_is_filtered_by_the_rest(done, refused, graph):
    splits = {name: graph[0].splits[name] for name in ("train", "test")}
    write_labelled(KnowledgeGraph(graph[0].entities, graph[0].relations, splits), Path("without"))
    without = OF_FILE.replace("--kg graph", "--kg without")
    done(without)
    found = read_ranks("new/out.parquet").frame.sort("head", "relation", "tail", "side")
    expected = ranks(Trained(MODEL, PARAMS), graph[0], filter_splits=["train", "test"])
    assert found.equals(expected.sort("head", "relation", "tail", "side"))
    err = refused(f"{without} --filter train,valid")
    assert "--filter must be among train, test, got 'valid'" in err


@pytest.mark.parametrize("step", ["best", "last", "120"])
def test_a_run(done, graph, step):
    out = done(f"best --step {step} --out out.csv")
    assert "mrr" in out
    assert graph[1] == [int(step) if step.isdigit() else step]
    table = read_ranks("out.csv").frame
    expected = ranks(Trained(MODEL, PARAMS), graph[0])
    assert table.with_columns(pl.col("head").cast(pl.String)).equals(expected)


def test_a_run_of_a_graph_elsewhere(call, refused):
    err = refused("moved --out out.csv")
    assert err == "owkg: error: moved: does not name the folder of its graph; pass it as --kg.\n"
    assert call("moved --kg graph --out out.csv")[0] == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--out out.parquet", "name either RUN"),
        (f"best {OF_FILE}", "name either RUN"),
        (
            "best --model transe --out out.csv",
            "--model and its options cannot be given with RUN, which has its own",
        ),
        ("best --norm 1 --out out.csv", "--model and its options"),
        ("other --out out.csv", "must have the 15 entities of other in order, got"),
        ("fewer --out out.csv", "must have the 1 relations of fewer in order, got 2"),
        ("--embeddings transe.npz --model transe --out out.csv", "--embeddings needs --kg for the graph"),
        (
            "--embeddings silent.npz --kg graph --out out.csv",
            "--embeddings needs --model, because silent.npz does not",
        ),
        (OF_FILE.replace("transe --norm 2", "complx"), "--model must be one of transe"),
        (OF_FILE.replace("--norm 2", "--norm 3"), "--norm must be 1 or 2, got 3"),
        (f"{OF_FILE} --option norm=1", "--option must not set anything twice, got norm again."),
        (f"{OF_FILE} --option margin", "--option must be NAME=VALUE"),
        (f"{OF_FILE} --option margin=x", "error: --option margin must be"),
        (f"{OF_FILE} --option margins=1", "--option margins is not an option of transe"),
        (f"{OF_FILE} --option margin=-1", "--option margin must be"),
        (f"{OF_FILE} --split full", "--split must be one of"),
        (f"{OF_FILE} --filter full", "--filter must be among"),
        (f"{OF_FILE} --filter test --raw", "--filter has no effect with --raw, got 'test'"),
        (f"{OF_FILE} --filter ''", "--filter is empty"),
        (f"{OF_FILE} --filter ,", "--filter must name splits, or be none, got ','"),
        (f"{OF_FILE} --name ''", "--name is empty"),
        (f"{OF_FILE} --step best", "--step has no effect with --embeddings, got 'best'"),
        (f"{OF_FILE} --sides both", "--sides must be head, tail, or head,tail for both, got"),
        (f"{OF_FILE} --tolerance -1", "--tolerance must be"),
        (f"{OF_FILE} --tolerance 0.1 --score", "--tolerance must be 0 with it, got 0.1"),
        (OF_FILE.replace("out.parquet", "out.txt"), "the name of a rank table must end in"),
        (
            OF_FILE.replace("--embeddings transe.npz", "--embeddings no.npz"),
            "error: no.npz: must be a file, and there is none.",
        ),
        (
            OF_FILE.replace("--embeddings transe.npz", "--embeddings a.npz"),
            "error: a.npz: must be a file, and there is none.",
        ),
        (OF_FILE.replace("new/", "transe.npz/"), "error: transe.npz/out.parquet: cannot be written: "),
        (OF_FILE.replace("new/out", "a"), "error: a.parquet: cannot be written: it is a folder."),
        (OF_FILE.replace("--kg graph", "--kg nowhere"), "nowhere"),
        (f"{OF_FILE} --queries no.tsv", "No such file or directory: 'no.tsv'"),
        (f"{OF_FILE} --unseen never", "--unseen must be one of error, drop, last, got 'never'"),
        (
            f"{OF_FILE} --embedding-layout interleaved",
            "--embedding-layout has no effect for transe, whose embeddings are real",
        ),
        (f"{OF_FILE} --relation-layout polar", "--relation-layout must be one of complex, phases, scaled"),
        ("best --embedding-layout interleaved --out out.csv", "--model and its options"),
        ("nowhere --out out.csv", "nowhere: must be a folder that owkg train or owkg rules wrote"),
        ("fewer --out out.csv", "--unseen drop or last evaluates on what RUN has seen of it"),
    ],
)
def test_refusals(refused, line, words):
    with np.load("transe.npz") as whole:
        np.savez("silent.npz", **{name: whole[name] for name in whole if name != "model"})
    for folder in ("a.parquet", "a.npz"):
        Path(folder).mkdir()
    err = refused(line)
    assert words in err


def test_overflowing_scores_name_their_query(refused, graph):
    labels = {"entities": graph[0].entities, "relations": graph[0].relations}
    write_embeddings("huge.npz", Trained(model("distmult", dim=2, reciprocal=False), _huge()), **labels)
    err = refused("--embeddings huge.npz --model distmult --kg graph --precision float32 --out out.csv")
    assert err.startswith(
        "owkg: error: huge.npz: its parameters must give scores that are finite, got NaN or"
    )
    assert not Path("out.csv").exists()


def test_infinite_scores_are_no_ranks(refused, graph):
    labels = {"entities": graph[0].entities, "relations": graph[0].relations}
    huge = {"entity": jnp.full((15, 2), 3e38), "relation": jnp.full((2, 2), 3e38)}
    write_embeddings("huge.npz", Trained(model("distmult", dim=2, reciprocal=False), huge), **labels)
    err = refused("--embeddings huge.npz --model distmult --kg graph --precision float32 --out out.csv")
    assert "must give scores that are finite" in err


def test_a_step_that_is_no_decimal_number_is_left_to_the_run(call, graph):
    call("best --step ² --out out.csv")
    assert graph[1] == ["²"]


def _huge():
    return {"entity": jnp.full((15, 2), 3e38), "relation": jnp.array([[3e38, -3e38]] * 2)}


def test_lists_are_the_best_answers_that_training_does_not_know(graph, call, refused):
    whole = graph[0]
    code, printed, _ = call(f"{OF_FILE} --out r.parquet --lists run.gz --depth 3 --name t")
    assert code == 0
    run = read_runs(["run.gz"])
    assert f"wrote run.gz: the best 3 answers to {run['query'].n_unique()} queries" in printed
    assert set(run["model"]) == {"t"}
    assert run.group_by("query").len()["len"].max() == 3
    known = np.concatenate([whole.splits["train"], whole.splits["valid"]])
    names = {(whole.entities[h], whole.relations[r], whole.entities[t]) for h, r, t in known}
    listed = {
        (e, r, a) if side == "tail" else (a, r, e)
        for side, e, r, a in run.select("side", "entity", "relation", "answer").rows()
    }
    assert not names & listed
    queries = {f"{whole.entities[h]}|{whole.relations[r]}|?" for h, r, _ in whole.splits["test"]}
    queries |= {f"?|{whole.relations[r]}|{whole.entities[t]}" for _, r, t in whole.splits["test"]}
    assert set(run["query"]) == queries
    code, _, error = call(f"{OF_FILE} --out r.parquet --lists graph")
    assert (code, error) == (2, "owkg: error: graph: cannot be written: it is a folder.\n")
    error = refused(f"{OF_FILE} --out transe.npz/r.parquet")
    assert "cannot be written: transe.npz is a file." in error


# --- which splits filter


@pytest.fixture
def sampled(graph):
    """The graph as `owkg sample` writes them: no split test, but two of other names."""
    splits = graph[0].splits
    parts = {"train": splits["train"], "test_sparse": splits["test"][:20], "test_full": splits["test"]}
    write_labelled(KnowledgeGraph(graph[0].entities, graph[0].relations, parts), Path("sampled"))
    queries = ["query\tside\tentity\trelation\tfull\tsparse\ttrain"]
    queries += [
        f"-\ttail\t{graph[0].entities[h]}\t{graph[0].relations[r]}\t1\t1\t1" for h, r, _ in splits["test"][:3]
    ]
    Path("queries.tsv").write_text("\n".join(queries) + "\n")
    return read_graph("sampled")


OF_SAMPLE = OF_FILE.replace("--kg graph", "--kg sampled")


@pytest.mark.parametrize("split", ["test_sparse", "test_full"])
def test_the_split_that_is_evaluated_filters(done, answer, sampled, split):
    out = done(f"{OF_SAMPLE} --split {split}")
    assert f"filtered by train, {split}\n" in out
    assert "note:" not in out
    table = read_ranks("new/out.parquet").frame
    assert table["filtered"].all()
    options = {"split": split, "filter_splits": ["train", split], "precision": "float64"}
    assert table.equals(ranks(Trained(MODEL, PARAMS), sampled, **options))
    about = {"split": split, "filter": ["train", split], "precision": "float64"}
    assert read_ranks("new/out.parquet").about == about
    said = answer(f"{OF_SAMPLE} --split {split}")
    assert [(row["filtered"], row["filter"]) for row in said["results"]] == [(True, ["train", split])] * 3


def test_a_list_without_the_split_is_noted(call, sampled):
    note = "test_full is not in the filter (train, test_sparse): the other answers to a query stay"
    code, out, _ = call(f"{OF_SAMPLE} --split test_full --filter train,test_sparse")
    assert code == 0
    assert f"note: {note}" in out
    code, out, _ = call(f"{OF_SAMPLE} --split test_full --filter train,test_sparse --format json")
    said = json.loads(out)
    assert (said["results"][0]["filtered"], said["results"][0]["filter"]) == (False, ["train", "test_sparse"])
    assert said["notes"][0].startswith(note)
    # What holds the split filters by it, and nobody who asks for none has to be told.
    for line in ("--split test_sparse --filter train,test_full", "--split test_full --raw"):
        assert "note:" not in call(f"{OF_SAMPLE} {line}")[1]
    assert read_ranks("new/out.parquet").about["filter"] == []


def test_metrics_know_by_what_a_table_is_filtered(call, sampled, capsys):
    for line in ("--split test_sparse", "--split test_sparse --raw", "--split test_full"):
        assert call(f"{OF_SAMPLE} {line}")[0] == 0
        assert main(["metrics", "new/out.parquet", "--kg", "sampled", "--metric", "mrr"]) == 0
        assert "another number of candidates" not in capsys.readouterr().err
    in_csv = OF_SAMPLE.replace("out.parquet", "out.csv")
    _, out, _ = call(f"{in_csv} --split test_sparse")
    assert "(only .parquet stores which splits)" in out
    assert main(["metrics", "new/out.csv", "--kg", "sampled", "--metric", "mrr"]) == 0
    assert "another number of candidates" not in capsys.readouterr().err
    pl.read_csv("new/out.csv").with_columns(candidates=99).write_csv("new/other.csv")
    assert main(["metrics", "new/other.csv", "--kg", "sampled", "--metric", "mrr"]) == 0
    words = (
        "40 of 40 tasks have another number of candidates than in the graph filtered by train, valid, test"
    )
    assert words in capsys.readouterr().err


def test_only_queries_are_asked(done, sampled):
    out = done(f"{OF_SAMPLE} --split test_full --queries queries.tsv --lists run.gz --depth 2")
    table = read_ranks("new/out.parquet").frame
    assert set(table["side"]) == {"tail"}
    asked = {(row["head"], row["relation"]) for row in table.rows(named=True)}
    wanted = {tuple(line.split("\t")[2:4]) for line in Path("queries.tsv").read_text().splitlines()[1:]}
    assert asked == wanted
    assert f"the best 2 answers to {len(wanted)} queries" in out
    assert read_ranks("new/out.parquet").about["queries"] == {"file": "queries.tsv", "asked": len(wanted)}
    assert read_runs(["run.gz"])["query"].n_unique() == len(wanted)


# --- what a model has never seen


@pytest.fixture
def fewer(graph):
    """`fewer.npz`: a model of the graph's entities but two; what it has seen of the graph."""
    seen = owkg.kg.seen_part(graph[0], graph[0].entities[2:], graph[0].relations)
    params = {"entity": PARAMS["entity"][2:], "relation": PARAMS["relation"]}
    labels = {"entities": seen.entities, "relations": seen.relations}
    write_embeddings("fewer.npz", Trained(MODEL, params), **labels)
    return seen, params


OF_FEWER = OF_FILE.replace("transe.npz", "fewer.npz")


@pytest.mark.parametrize("unseen", ["drop", "last"])
def test_what_a_model_has_never_seen(call, answer, done, refused, graph, fewer, unseen):
    whole, (seen, params) = graph[0], fewer
    err = refused(OF_FEWER)
    assert "fewer.npz: its entity labels must be the labels of the graph, but 2 are not in the file: " in err
    assert "; --unseen drop leaves their triples out, --unseen last ranks them last" in err
    out = done(f"{OF_FEWER} --unseen {unseen} --lists run.gz")
    table = read_ranks("new/out.parquet").frame
    lacking = len(whole.splits["test"]) - len(seen.splits["test"])
    assert lacking > 0
    assert f"has never seen 2 entities and 0 relations of the graph: {lacking} triples of test" in out
    expected = {"policy": unseen, "entities": 2, "relations": 0, "triples": lacking, "candidates": 13}
    assert read_ranks("new/out.parquet").about["unseen"] == expected
    if unseen == "drop":
        assert table.equals(ranks(Trained(MODEL, params), seen))
    else:
        assert table.equals(ranks(Trained(MODEL, params), whole, seen=seen))
        assert table.height == 2 * len(whole.splits["test"])
    assert answer(f"{OF_FEWER} --unseen {unseen}")["unseen"] == expected
    assert main(["metrics", "new/out.parquet", "--kg", "graph", "--metric", "mrr"]) == 0


def test_what_a_run_has_never_seen(call, done, refused, graph):
    assert "must have the 15 entities of other in order" in call("other --unseen drop --out out.parquet")[2]
    params = PARAMS | {"entity": PARAMS["entity"][2:]}
    seen = owkg.kg.seen_part(graph[0], graph[0].entities[2:], graph[0].relations)
    out = done("part --unseen drop --out out.parquet")
    assert "note: the facts" not in out
    assert read_ranks("out.parquet").frame.equals(ranks(Trained(MODEL, params), seen))
    err = refused("part --out out.parquet")
    assert "must have the 13 entities of part in order, got" in err
    assert "; --unseen drop or last evaluates on what RUN has seen of it" in err


def test_fb15k237_as_pykeen_trains_it(owkg_data, tmp_path, done):
    whole = read_graph(owkg_data / "fb15k237", duplicates="keep")
    train = whole.splits["train"]
    entities = [whole.entities[i] for i in np.unique(train[:, [0, 2]])]
    relations = [whole.relations[i] for i in np.unique(train[:, 1])]
    scorer = model("transe", dim=1)
    params, _ = scorer.init(jax.random.key(0), len(entities), len(relations))
    write_embeddings(tmp_path / "fb.npz", Trained(scorer, params), entities=entities, relations=relations)
    line = f"--embeddings {tmp_path}/fb.npz --model transe --kg {owkg_data}/fb15k237 --out fb.parquet"
    out = done(f"{line} --unseen drop --sides tail --format json")
    said = json.loads(out)["unseen"]
    assert (said["candidates"], said["triples"]) == (14_505, 28)
    assert read_ranks("fb.parquet").frame.height == 20_466 - 28


# --- before the graph is read


def test_files_are_looked_at_before_the_graph_is_read(refused, capsys, monkeypatch):
    monkeypatch.setattr(owkg.kg, "read_graph", None)
    for line, words in (
        (OF_FILE.replace("transe.npz", "no.npz"), "no.npz: must be a file, and there is none."),
        (f"{OF_FILE} --queries no.tsv", "'no.tsv'"),
        (OF_FILE.replace("new/", "transe.npz/"), "transe.npz/out.parquet: cannot be written"),
        (f"{OF_FILE} --lists graph", "graph: cannot be written: it is a folder"),
    ):
        err = refused(line)
        assert words in err
        assert not Path("new").exists()
    assert main(["metrics", "no.parquet", "--kg", "graph"]) == 2
    assert "No such file or directory: 'no.parquet'" in capsys.readouterr().err


def test_the_size_of_blocks_is_an_option(call, graph):
    assert call(f"{OF_FILE} --block-mib 1")[0] == 0
    assert read_ranks("new/out.parquet").frame.equals(ranks(Trained(MODEL, PARAMS), graph[0]))
    assert call(f"{OF_FILE} --block-mib 0")[0] == 2


def test_sampled(call, done, graph):
    """The library's estimates, in each format and as a file; a share of one is full evaluation."""
    sampled = owkg.evaluation.sampled(Trained(MODEL, PARAMS), graph[0], ["mrr", "hits@3"], share=0.5, seed=4)
    asked = OF_FILE.replace("out.parquet", "out.csv") + " --sample 0.5 --metric mrr,hits@3 --seed 4"
    out = done(f"{asked} --format json")
    assert json.loads(out)["results"] == sampled.values.to_dicts()
    assert "full evaluation is fast and has no sampling error" in json.loads(out)["notes"][-1]
    assert Path("new/out.csv").read_text() == sampled.values.write_csv()
    code, out, _ = call(f"{asked} --sides tail --ties optimistic")
    assert code == 0
    assert "unbiased estimates, optimistic ranks, test" in out
    assert "scores computed: " in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--sample 0", "--sample"),
        ("--sample 1.5", "--sample"),
        ("--sample 0.1 --metric mr", "--metric"),
        ("--sample 0.1 --typical-share -1", "--typical-share"),
        ("--sample 0.1 --lists x.run", "--lists has no effect with --sample"),
        ("--sample 0.1 --out new/out.parquet", "--out must end in .csv"),
        ("--sample 0.1 --depth 5", "--depth has no effect with --sample"),
        ("--sample 0.1 --metric amrr", "--metric must be one of mrr, p-mrr@P, log-mrr, hits@K, got 'amrr'"),
        ("--sample 0.1 --typical-share nan", "--typical-share"),
        ("--metric mrr", "--metric has no effect without --sample"),
        ("--depth 5", "--depth has no effect without --lists"),
        ("--out new/out.csv --lists new/out.csv", "new/out.csv: cannot be written: two options name it"),
        ("--seed 0", "--seed has no effect without --sample"),
    ],
)
def test_bad_samples(refused, line, message):
    err = refused(f"{OF_FILE.replace('.parquet', '.csv')} {line}")
    assert message in err
    assert not Path("new").exists()


def test_double_precision(call, done, answer, refused, capsys, tmp_path, monkeypatch):
    """Of 2**24 and 2**24 + 1, which are one number in float32; the lists agree with the ranks."""
    monkeypatch.chdir(tmp_path)
    labels = {"entities": ("a", "b", "c"), "relations": ("r",)}
    test = np.array([[0, 0, 1]], np.int32)
    splits = {"train": np.array([[1, 0, 0], [2, 0, 0]], np.int32), "test": test}
    write_labelled(KnowledgeGraph(*labels.values(), splits), tmp_path / "far")
    params = {
        "entity": jnp.array([[0.0, 0.0], [2.0**24, 1.0], [2.0**24, 0.0]]),
        "relation": jnp.zeros((1, 2)),
    }
    write_embeddings("far.npz", Trained(model("transe", dim=2, norm=1), params), **labels)
    line = "--embeddings far.npz --kg far --sides tail --raw --score --name far --out "
    done(line + "narrow.parquet --precision float32")
    code, _, _ = call(line + "wide.parquet --lists wide.run")
    assert code == 0
    narrow, wide = (read_ranks(Path(f"{name}.parquet")).frame for name in ("narrow", "wide"))
    assert narrow.select("optimistic", "pessimistic").row(0) == (2, 3)
    assert wide.select("optimistic", "pessimistic", "score").row(0) == (3, 3, -(2.0**24) - 1)
    run = read_runs(["wide.run"])
    assert run["answer"].to_list() == ["a", "c", "b"]
    assert run["score"].to_list() == [0, -(2.0**24), -(2.0**24) - 1]
    assert answer(line + "wide.parquet --precision float64")["results"][0]["precision"] == "float64"
    err = refused(line + "no.parquet --precision half")
    assert "--precision must be float32 or float64, got 'half'" in err
    assert not Path("no.parquet").exists()

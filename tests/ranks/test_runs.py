"""TREC runs to ranks, against counting by hand."""

import gzip
import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph
from owkg.ranks import rank_table, ranks_from_run

ENTITIES = tuple("abcdef")
RELATIONS = ("r", "s|t")


def query(side: str, h: str, r: str, t: str) -> str:
    return f"{h}|{r}|?" if side == "tail" else f"?|{r}|{t}"


def write_run(path, lines) -> None:
    path.write_text("".join(f"{q} Q0 {answer} {i} {score} {tag}\n" for i, (q, answer, score, tag) in lines))


@st.composite
def worlds(draw):
    """(graph, lines of a run) over few entities, so that everything happens: ties, known answers, gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    splits = {
        name: np.stack([rng.integers(n, size=5) for n in (6, 2, 6)], axis=1).astype(np.int32)
        for name in ("train", "test")
    }
    share, lines = draw(st.floats(0, 1)), []
    for side, tag, r in itertools.product(("head", "tail"), draw(st.sampled_from(["m", "mn"])), RELATIONS):
        for known, answer in itertools.product(ENTITIES, ENTITIES):
            if rng.random() < share:
                asked = f"{known}|{r}|?" if side == "tail" else f"?|{r}|{known}"
                lines.append((asked, answer, float(rng.integers(3)), tag))
    rng.shuffle(lines)
    lines = [(asked, answer, float(score), tag) for asked, answer, score, tag in lines]
    return KnowledgeGraph(ENTITIES, RELATIONS, splits), lines


def oracle(graph, lines, tolerance, filter_splits) -> Counter:
    """The rows of the table, one answer after the other."""
    lists = defaultdict(dict)
    for asked, answer, score, tag in lines:
        lists[tag, asked][answer] = score
    sides = {"head" if asked.startswith("?|") else "tail" for asked, *_ in lines}
    labels = [
        [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in graph.splits[s].tolist()]
        for s in graph.splits
    ]
    splits = dict(zip(graph.splits, labels, strict=True))
    facts = set(splits["test"]).union(*(splits[name] for name in filter_splits))
    rows = Counter()
    for tag, side in itertools.product({tag for *_, tag in lines}, sides):
        for h, r, t in splits["test"]:
            own = t if side == "tail" else h
            found = lists.get((tag, query(side, h, r, t)), {})

            def fact(e, h=h, r=r, t=t, side=side):
                return (h, r, e) if side == "tail" else (e, r, t)

            others = [e for e in ENTITIES if e != own and fact(e) not in facts]
            scores = [found[e] for e in others if e in found]
            candidates = 1 + len(others)
            if own in found:
                best = 1 + sum(s > found[own] + tolerance for s in scores)
                worst = 1 + sum(s >= found[own] - tolerance for s in scores)
            else:
                best, worst = 1 + len(scores), candidates
            rows[h, r, t, side, best, worst, candidates, tag] += 1
    return rows


@given(
    world=worlds(),
    tolerance=st.sampled_from([0.0, 1.0]),
    splits=st.sampled_from([["train"], [], ["train", "test"]]),
)
def test_ranks_are_what_counting_gives(tmp_path_factory, world, tolerance, splits):
    graph, lines = world
    if not lines:
        return
    path = tmp_path_factory.mktemp("run") / "system.run"
    write_run(path, enumerate(lines))
    table, _ = ranks_from_run(
        path, graph, split="test", filter_splits=splits, tolerance=tolerance, unanswered=True
    )
    columns = ["head", "relation", "tail", "side", "optimistic", "pessimistic", "candidates", "model"]
    assert Counter(table.select(columns).iter_rows()) == oracle(graph, lines, tolerance, splits)
    assert table["filtered"].all()


@pytest.mark.parametrize("side", ["head", "tail"])
def test_a_run_of_all_entities_gives_the_ranks_of_its_scores(tmp_path, side):
    rng = np.random.default_rng(0)
    triples = np.unique(rng.integers((6, 2, 6), size=(20, 3)), axis=0).astype(np.int32)
    graph = KnowledgeGraph(
        ENTITIES, RELATIONS, {"train": triples[:8], "valid": triples[8:9], "test": triples[9:]}
    )
    asked = {}
    for h, r, t in triples[9:].tolist():
        asked[query(side, ENTITIES[h], RELATIONS[r], ENTITIES[t])] = rng.integers(4, size=6) / 2
    lines = [(q, ENTITIES[e], s, "m") for q, scores in asked.items() for e, s in enumerate(scores)]
    write_run(tmp_path / "system.run", enumerate(lines))
    scores = [asked[query(side, ENTITIES[h], RELATIONS[r], ENTITIES[t])] for h, r, t in triples[9:].tolist()]
    expected = rank_table(graph, np.array(scores), triples[9:], side, model="m")
    table, notes = ranks_from_run(tmp_path / "system.run", graph, split="test")
    assert table.select(expected.columns).equals(expected)
    assert notes == ()


RUN = """\
a|r|? Q0 b 9 0.9 m
a|r|? Q0 c 1 0.9 m
a|r|? Q0 d 2 0.5 m
a|r|? Q0 e 3 -inf m
?|s|t|b Q0 a 1 1e-3 m
"""
QRELS = """\
a|r|? 0 c 1
a|r|? 0 d 2
a|r|? 0 e 0
a|r|? 0 f 1
?|s|t|b 0 a 1
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "qrels").write_text(QRELS)
    return tmp_path / "run", tmp_path / "qrels"


def test_qrels_and_a_number_of_entities_are_enough(files):
    run, qrels = files
    table, notes = ranks_from_run(run, qrels=qrels, num_entities=10)
    rows = table.select("tail", "optimistic", "pessimistic", "candidates").rows()
    # c, d and f are relevant: they do not compete, and 8 of 10 entities are candidates for each of them.
    assert rows == [("b", 1, 1, 10), ("c", 1, 2, 8), ("d", 2, 2, 8), ("f", 3, 8, 8)]
    assert table["relation"].to_list() == ["s|t", "r", "r", "r"]
    assert table.columns[-2:] == ["model", "bounded"]
    assert table["bounded"].to_list() == [False, False, False, True]
    assert notes == ("1 relevant answers were not retrieved: they tie with all unretrieved candidates",)


def test_topics_need_no_graph(files):
    run, qrels = files
    run.write_text("301 Q0 d1 1 3.0 bm25\n301 Q0 d2 2 2.0 bm25\n302 Q0 d1 1 1.0 bm25\n")
    qrels.write_text("301 0 d2 1\n301 0 d9 1\n302 0 d1 1\n302 0 d2 0\n")
    table, notes = ranks_from_run(run, qrels=qrels, num_entities=50)
    rows = table.select("head", "tail", "side", "optimistic", "pessimistic", "candidates").rows()
    assert rows == [
        ("301", "d2", "tail", 2, 2, 49),
        ("301", "d9", "tail", 2, 49, 49),
        ("302", "d1", "tail", 1, 1, 50),
    ]
    assert len(notes) == 1
    run.write_text("301 Q0 d1 1 3.0 bm25\na|r|? Q0 d1 1 3.0 bm25\n")
    with pytest.raises(ValueError, match="run, line 1: a query must be 'head"):
        ranks_from_run(run, qrels=qrels, num_entities=50)


def test_tabs_and_spaces_line_ends_and_gzip(files, tmp_path):
    run, qrels = files
    expected, _ = ranks_from_run(run, qrels=qrels, num_entities=10)
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress(RUN.replace(" ", "\t ").replace("\n", " \r\n").encode()))
    assert ranks_from_run(packed, qrels=qrels, num_entities=10).table.equals(expected)
    # Five tabs: labels may hold spaces.
    run.write_text(RUN.replace(" ", "\t").replace("b", "the b"))
    qrels.write_text(QRELS.replace(" ", "\t").replace("b", "the b"))
    table, _ = ranks_from_run(run, qrels=qrels, num_entities=10)
    assert table["tail"].to_list() == ["the b", "c", "d", "f"]
    assert table.drop("tail").equals(expected.drop("tail"))


def test_several_tags_are_several_models(files):
    run, qrels = files
    run.write_text(RUN + RUN.replace(" m\n", " n\n").replace("0.5", "0.95"))
    table, _ = ranks_from_run(run, qrels=qrels, num_entities=10)
    assert table.filter(model="m")["optimistic"].to_list() == [1, 1, 2, 3]
    assert table.filter(model="n")["optimistic"].to_list() == [1, 1, 1, 3]


def test_what_nobody_asked_is_told(files):
    run, qrels = files
    qrels.write_text("a|r|? 0 b 1\nf|r|? 0 a 1\nf|r|? 0 b 1\n")
    with pytest.raises(
        ValueError,
        match=r"run: 'f\|r\|\?' has a relevant answer, but no list, or an empty one, under the tag 'm'",
    ):
        ranks_from_run(run, qrels=qrels, num_entities=10)
    table, notes = ranks_from_run(run, qrels=qrels, num_entities=10, unanswered=True)
    assert table.select("optimistic", "pessimistic").rows() == [(1, 2), (1, 9), (1, 9)]
    assert [note[:36] for note in notes] == [
        "2 relevant answers were not retrieve",
        "1 queries with relevant answers are ",
        "1 queries of the run have no relevan",
    ]


# --- bad input

LINE = "a|r|? Q0 b 1 0.5 m\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a|r|? Q0 b 1 0.5\n", "must be 6 fields: query, q0, answer, rank, score, tag, got 5 columns"),
        ("a|r|? Q0 b 1 0.5 m n\n", "must be 6 fields: .*, got 7 columns"),
        ("\n", "must be 6 fields: .*, got a blank line"),
        ("a|r|? Q0 c 1 high m\n", "a score must be a number, got 'high'"),
        ("a|r|? Q0 c 1 nan m\n", "a score must not be NaN, got 'nan'"),
        ("a|r|? Q0 c 1 NaN m\n", "a score must not be NaN, got 'NaN'"),
        ("a|r|? Q0 b 2 0.4 m\n", r"the answer 'b' to 'a\|r\|\?' is also on an earlier line"),
        ("a|r Q0 c 1 0.5 m\n", r"a query must be 'head\|relation\|\?' or .*, got 'a\|r'"),
        ("a|? Q0 c 1 0.5 m\n", "a query must be"),
        ("a|r|b Q0 c 1 0.5 m\n", "a query must be"),
        ("?|r|? Q0 c 1 0.5 m\n", "a query must be"),
        ("|r|? Q0 c 1 0.5 m\n", "a query must be"),
        ("a||? Q0 c 1 0.5 m\n", "a query must be"),
        ("301 Q0 c 1 0.5 m\n", "a query must be"),
        ("a|r|? Q0 z 1 0.5 m\n", "the graph has no entity 'z'"),
        ("z|r|? Q0 b 1 0.5 m\n", "the graph has no entity 'z'"),
        ("a|z|? Q0 b 1 0.5 m\n", "the graph has no relation 'z'"),
    ],
)
def test_a_bad_line_of_a_run_is_named(tmp_path, line, message):
    graph = KnowledgeGraph(ENTITIES, RELATIONS, {"test": np.zeros((1, 3), np.int32)})
    path = tmp_path / "run"
    path.write_text(LINE + line + LINE.replace("b", "d"))
    with pytest.raises(ValueError, match=f"run, line 2: {message}"):
        ranks_from_run(path, graph, split="test", filter_splits=[], unanswered=True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a|r|? 0 c\n", "must be 4 fields: query, zero, answer, relevance, got 3 columns"),
        ("a|r|? 0 c yes\n", "a relevance must be a whole number, got 'yes'"),
        ("a|r|? 0 c 0.5\n", "a relevance must be a whole number, got '0.5'"),
        ("a|r|? 0 b 0\n", r"the answer 'b' to 'a\|r\|\?' is also on an earlier line"),
        ("a 0 c 1\n", "a query must be"),
        ("a|r|? 0 z 1\n", "the graph has no entity 'z'"),
    ],
)
def test_a_bad_line_of_qrels_is_named(tmp_path, line, message):
    graph = KnowledgeGraph(ENTITIES, RELATIONS, {"test": np.zeros((1, 3), np.int32)})
    (tmp_path / "run").write_text(LINE)
    (tmp_path / "qrels").write_text("a|r|? 0 b 1\n" + line)
    with pytest.raises(ValueError, match=f"qrels, line 2: {message}"):
        ranks_from_run(tmp_path / "run", graph, qrels=tmp_path / "qrels", filter_splits=[])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qrels": None}, "`qrels` or `split` must give the relevant answers, got neither"),
        ({"split": "test"}, "`qrels` or `split` must give the relevant answers, got both"),
        ({"num_entities": None}, "`kg` or `num_entities` must give the number of entities, got neither"),
        ({"qrels": None, "split": "test"}, "`kg` must be given for its splits, got none and 'test'"),
        ({"filter_splits": ["train"]}, r"`kg` must be given for its splits, got none and \['train'\]"),
        ({"num_entities": 5}, "`num_entities` must be at least 6, as many as the files name, got 5"),
        ({"num_entities": 9.5}, "`num_entities` must be a whole number of at least 1, got 9.5"),
        ({"tolerance": -1.0}, "`tolerance` must be finite and at least 0, got -1.0"),
    ],
)
def test_bad_arguments_are_named(files, change, message):
    run, qrels = files
    with pytest.raises(ValueError, match=message):
        ranks_from_run(run, **({"qrels": qrels, "num_entities": 10} | change))


def test_bad_arguments_with_a_graph_are_named(files):
    graph = KnowledgeGraph(ENTITIES, RELATIONS, {"test": np.zeros((1, 3), np.int32)})
    with pytest.raises(ValueError, match="got both"):
        ranks_from_run(files[0], graph, split="test", num_entities=10)
    with pytest.raises(ValueError, match="`split` must be one of test, got 'dev'"):
        ranks_from_run(files[0], graph, split="dev", filter_splits=[])
    with pytest.raises(ValueError, match="`filter_splits` must be among test, got 'train'"):
        ranks_from_run(files[0], graph, split="test", filter_splits=["train"])


def test_no_relevant_answer_at_all(files):
    files[1].write_text("a|r|? 0 b 0\n")
    with pytest.raises(ValueError, match="run: no answer to any query is relevant"):
        ranks_from_run(files[0], qrels=files[1], num_entities=10)

"""Rules for trivial candidates: against loops over sets, and on the published pool."""

import sys
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph, read_graph, relation_categories
from owkg.kg.names import query_text
from owkg.pools.trivial import TrivialRule, rule_counts, trivial

ENTITIES, RELATIONS = tuple("abcdefghij"), tuple("rstu")
TRIPLE = ["head", "relation", "tail"]


def world(seed):
    """(graph, every candidate on both sides)."""
    rng = np.random.default_rng(seed)
    # One relation in few triples, one in none; one entity in none.
    splits = {
        name: np.stack(
            [rng.integers(8, size=n), rng.choice(3, p=[0.6, 0.3, 0.1], size=n), rng.integers(9, size=n)], 1
        )
        for name, n in (("train", 9), ("test", 3))
    }
    graph = KnowledgeGraph(ENTITIES, RELATIONS, {k: v.astype(np.int32) for k, v in splits.items()})
    names = {"entity": ENTITIES, "relation": RELATIONS, "answer": ENTITIES}
    frame = pl.DataFrame({"side": ["head", "tail"]})
    for column, labels in names.items():
        frame = frame.join(pl.DataFrame({column: labels}), how="cross")
    return graph, frame.with_columns(query_text())


def by_hand(graph, frame, known, min_share):
    """The rules that hold of each candidate, one after the other."""
    label = [
        [(ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in graph.splits[name].tolist()]
        for name in ("train", *known)
    ]
    train, given_facts = set(label[0]), {fact for facts in label[1:] for fact in facts}
    members, slots = defaultdict(set), defaultdict(set)
    for h, r, t in train:
        for entity, slot in ((h, (r, "head")), (t, (r, "tail"))):
            members[slot].add(entity)
            slots[entity].add(slot)
    category = dict(zip(RELATIONS, relation_categories(graph.splits["train"], 4), strict=True))
    for row in frame.rows(named=True):
        entity, relation, answer = row["entity"], row["relation"], row["answer"]
        tail = row["side"] == "tail"
        answers = {
            t if tail else h for h, r, t in given_facts if r == relation and (h if tail else t) == entity
        }
        wanted = members[relation, row["side"]]
        one = category[relation] in (("1-1", "N-1") if tail else ("1-1", "1-N"))
        fits = any(len(members[slot] & wanted) >= min_share for slot in slots[answer])
        functional = one and bool(answers) and answer not in answers
        odd = bool(slots[answer]) and bool(wanted) and not fits and answer not in answers
        yield functional, odd


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), min_share=st.integers(1, 3), both=st.booleans())
def test_rules_against_a_loop(seed, min_share, both):
    graph, frame = world(seed)
    known = ["train", "test"] if both else ["train"]
    held = list(by_hand(graph, frame, known, min_share))
    options = {"known": known, "min_share": min_share}
    found = trivial(frame, graph, **options)
    assert found.drop("rule").equals(frame)
    assert found["rule"].to_list() == ["functional" if f else "type" if t else None for f, t in held]
    for i, rule in enumerate(TrivialRule):
        alone = trivial(frame, graph, rules=[rule], **options)["rule"]
        assert alone.to_list() == [rule.value if one[i] else None for one in held]
    counts = dict(rule_counts(found).rows())
    assert counts["functional"] == sum(f for f, _ in held)
    assert counts["type"] == sum(t and not f for f, t in held)
    assert sum(counts.values()) == len(frame)


def test_counts_name_every_rule():
    graph, frame = world(0)
    none = trivial(frame, graph, known=[], rules=[])
    assert rule_counts(none).rows() == [("functional", 0), ("type", 0), (None, len(frame))]
    assert rule_counts(trivial(frame[:0], graph, known=[])).rows() == [
        ("functional", 0),
        ("type", 0),
        (None, 0),
    ]


def test_blocks_change_nothing(monkeypatch):
    graph, frame = world(1)
    whole = trivial(frame, graph, known=["train"])
    # The package has a function of the same name as the module.
    monkeypatch.setattr(sys.modules["owkg.pools.trivial"], "_BLOCK", 7)
    assert trivial(frame, graph, known=["train"]).equals(whole)


@pytest.mark.parametrize(
    ("change", "options", "shown"),
    [
        ({}, {"known": ["valid"]}, "'valid'"),
        ({}, {"known": [], "min_share": 0}, "`min_share`"),
        ({}, {"known": [], "threshold": 0.5}, "`threshold`"),
        ({}, {"known": [], "rules": ["other"]}, "`rules`"),
        ({}, {"known": [], "rules": "type"}, "`rules`"),
        ({"answer": "zz"}, {"known": []}, "no entity 'zz'"),
        ({"relation": "zz"}, {"known": []}, "no relation 'zz'"),
    ],
)
def test_refusals(change, options, shown):
    graph, frame = world(2)
    frame = frame[:3].with_columns(pl.lit(value).alias(name) for name, value in change.items())
    frame = frame.unique("query", keep="first")
    with pytest.raises(ValueError, match=shown):
        trivial(frame, graph, **options)


def test_no_rules_column():
    with pytest.raises(ValueError, match="column rule"):
        rule_counts(pl.DataFrame({"a": [1]}))


@pytest.fixture(scope="module")
def published(owkg_data):
    """(graph, the published pool as candidates of the queries of FB-Test-S, with label and filtered)."""
    folder = owkg_data / "kgc_sparsity"

    def read(name, *columns):
        return pl.read_csv(
            folder / name, separator="\t", has_header=False, new_columns=[*TRIPLE, *columns], quote_char=None
        )

    filtered = read("filtered.txt.gz", "label").select(*TRIPLE, filtered=True)
    pooled = (
        read("pooling_depth.txt.gz", "depth")
        .join(read("annotations.txt.gz", "label"), on=TRIPLE)
        .join(filtered, on=TRIPLE, how="left")
        .with_columns(pl.col("filtered").fill_null(False))
    )
    asked = _both_sides(read("fb_test_s.txt")).select("query").unique()
    candidates = _both_sides(pooled).join(asked, on="query", how="semi")
    return read_graph(owkg_data / "fb15k237"), candidates, len(asked)


def _both_sides(frame):
    sides = (("tail", "head", "tail"), ("head", "tail", "head"))
    named = [
        frame.with_columns(side=pl.lit(side), entity=pl.col(entity), answer=pl.col(answer))
        for side, entity, answer in sides
    ]
    return pl.concat(named).with_columns(query_text())


@pytest.mark.parametrize(
    ("rules", "min_share", "marked", "of_filtered", "positives"),
    [
        (["functional"], 1, 8902, 8899, 1),
        (["type"], 1, 4340, 3874, 9),
        (["type"], 20, 5657, 4979, 35),
        (["functional", "type"], 1, 9368, 8899, 10),
    ],
)
def test_the_published_filter(published, rules, min_share, marked, of_filtered, positives):
    """The functional rule is the published filter: all 8,899 triples, 3 more, one of them relevant.

    Those 3 answer queries on both sides, and are trivial on one: they may have been pooled for the other.
    """
    graph, candidates, queries = published
    assert (queries, candidates.select(TRIPLE).n_unique()) == (1745, 21_469)
    found = trivial(
        candidates, graph, known=["train", "valid", "test"], rules=rules, min_share=min_share
    ).filter(pl.col("rule").is_not_null())
    triples = found.unique(TRIPLE)
    assert len(triples) == marked
    assert triples["filtered"].sum() == of_filtered
    assert (triples["label"] == "Y").sum() == positives
    if rules == ["functional"]:
        others = candidates.join(triples.filter(~pl.col("filtered")), on=TRIPLE, how="semi")
        assert sorted(others.group_by(TRIPLE).len()["len"]) == [2, 2, 2]

"""Every expected value by brute force, and what the vectors are of."""

import importlib.util
import json
import math
import re
from pathlib import Path

import pytest

from owkg.conformance import vectors

_PATH = Path(__file__).with_name("reference.py")
_SPEC = importlib.util.spec_from_file_location("conformance_reference", _PATH)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

ALL = json.loads(reference.FILE.read_text(encoding="utf-8"))["vectors"]


@pytest.mark.parametrize("vector", ALL, ids=lambda vector: vector["id"])
def test_expected_values_by_brute_force(vector):
    found = reference.expected(vector)
    assert found.keys() == vector["expected"].keys()
    for name, value in vector["expected"].items():
        if value is None:
            assert found[name] is None
        else:
            assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-15)


def ordered(vector):
    """(scores, answer, candidates that are left) of a vector of ranks, if its orders are few; else None."""
    (query, *others) = vector["input"]["queries"]
    scores = [float(value) for value in query["scores"]]
    left = {e for name in vector["protocol"]["filter"] for e in query["known"].get(name, [])}
    among = [e for e in query.get("candidates", range(len(scores))) if e == query["answer"] or e not in left]
    few = not others and len(among) <= 7 and not any(map(math.isnan, scores))
    return (scores, query["answer"], among) if few and vector["input"]["dtype"] != "float32" else None


FEW = [v for v in ALL if v["kind"] == "ranks" and ordered(v)]


@pytest.mark.parametrize("vector", FEW, ids=lambda vector: vector["id"])
def test_ranks_are_those_of_the_orders(vector):
    """Of every order that sorts the scores: first, mean and last place of the answer."""
    scores, answer, among = ordered(vector)
    found = reference.orders([scores[e] for e in among], among.index(answer))
    expected = vector["expected"]
    assert (expected["optimistic"], expected["pessimistic"]) == (min(found), max(found))
    assert expected["realistic"] == pytest.approx(sum(found) / len(found))
    assert expected["candidates"] == len(among)


def test_published_numbers_of_the_threads():
    """What the threads themselves say is right."""
    of = {vector["id"]: vector["expected"] for vector in ALL}
    assert [of["ties-constant"][rule] for rule in ("optimistic", "realistic", "pessimistic")] == [1, 6, 11]
    assert [of["ties-three-rules"][rule] for rule in ("optimistic", "realistic", "pessimistic")] == [2, 3, 4]
    assert of["ties-half-rank"]["realistic"] == 1.5
    assert of["ir-ndcg-ideal"]["nDCG@3"] == pytest.approx(0.4124, abs=5e-5)
    assert of["ir-ndcg-ideal"]["nDCG"] == pytest.approx(0.6957, abs=5e-5)
    assert of["ir-ties-graded"]["nDCG"] == pytest.approx(0.695694, abs=5e-7)
    assert of["ir-ties-by-name-loses"]["nDCG"] == pytest.approx(0.6309, abs=5e-5)
    assert of["mrr-minimum"]["mrr"] > 0.06 + (0.3 - 0.06) / 10


def test_the_file_is_as_it_says():
    assert len({vector.id for vector in vectors()}) == len(vectors()) == len(ALL)
    threads = {defect["thread"] for vector in vectors() for defect in vector.defects}
    assert sum(bool(vector.defects) for vector in vectors()) >= 30
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in threads)
    assert len(threads) >= 60
    assert {vector.kind for vector in vectors()} == {"ranks", "metrics", "ir"}
    for vector in vectors():
        assert vector.expected
        assert vector.tolerance > 0
        for defect in vector.defects:
            assert defect["says"].endswith(".")

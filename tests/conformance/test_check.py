"""Adapters: owkg passes, wrong ones fail where they should, bad ones are reported."""

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import pytest

from owkg.conformance import adapter, check, read_results, results, runner, summary, vectors, verdict_of
from owkg.conformance.front import ADAPTERS

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "owkg" / "conformance" / "runner.py"
RECORD = ROOT / "docs" / "reproduction" / "conformance.json"


class Right:
    """Gives the expected values, but where a subclass is wrong on purpose."""

    name, version = "right", "1"

    def supports(self, vector):
        return True

    def run(self, vector):
        return {name: self.changed(vector, name, value) for name, value in vector.expected.items()}

    def changed(self, vector, name, value):
        return value


class FromZero(Right):
    def changed(self, vector, name, value):
        return value - 1 if name == "mr" else value


class Optimistic(Right):
    def changed(self, vector, name, value):
        low = vector.expected.get(name.replace("realistic", "optimistic"))
        return low if name.startswith("realistic") else value


class ReciprocalOfMean(Right):
    def changed(self, vector, name, value):
        return 1 / vector.expected["mr"] if name == "mrr" and "mr" in vector.expected else value


class WithoutFilter(Right):
    """Counts all better scores, whoever is known."""

    def changed(self, vector, name, value):
        if vector.kind != "ranks" or name != "optimistic" or value is None:
            return value
        (query,) = vector.input["queries"]
        scores = [float(score) for score in query["scores"]]
        among = query.get("candidates", range(len(scores)))
        return 1 + sum(scores[e] > scores[query["answer"]] for e in among)


def wrong(one):
    return {row["vector"] for row in check(one).iter_rows(named=True) if row["verdict"] in ("fail", "error")}


def test_owkg_passes_every_vector():
    table = check(adapter("owkg"))
    assert table.filter(table["verdict"] != "pass").is_empty()
    assert table["vector"].n_unique() == len(vectors())


def test_the_right_values_pass():
    assert wrong(Right()) == set()


def test_ranks_from_zero_fail_where_mean_ranks_are():
    assert wrong(FromZero()) == {vector.id for vector in vectors() if "mr" in vector.expected}


def test_optimistic_ranks_fail_where_the_answer_ties():
    def ties(vector):
        pairs = [(name, name.replace("realistic", "optimistic")) for name in vector.expected]
        return any(
            vector.expected[name] != vector.expected[low] for name, low in pairs if low in vector.expected
        )

    found = wrong(Optimistic())
    assert found == {vector.id for vector in vectors() if vector.kind == "ranks" and ties(vector)}
    assert {"ties-constant", "ties-batch", "filter-tied", "scores-unseen-answer"} <= found
    assert "ties-near" not in found


def test_the_reciprocal_of_the_mean_rank_fails():
    found = wrong(ReciprocalOfMean())
    assert {"mean-of-reciprocals", "mrr-minimum"} <= found
    constant = [v.id for v in vectors() if "mrr" in v.expected and v.expected["mrr"] == 1]
    assert not set(constant) & found
    assert all(vector.kind == "metrics" for vector in vectors() if vector.id in found)


def test_ranks_without_a_filter_fail_where_a_better_answer_is_known():
    found = wrong(WithoutFilter())
    assert all(one.startswith(("filter-", "candidates-filtered", "scores-unseen-filtered")) for one in found)
    for one in ("filter-valid", "filter-with-test", "filter-ignored", "filter-negative-scores"):
        assert one in found
    for one in ("filter-raw-several", "filter-empty", "filter-tied", "candidates-all"):
        assert one not in found


# --- bad adapters


class Raises(Right):
    def run(self, vector):
        raise KeyError("broken\nthing")


class Refuses(Right):
    def run(self, vector):
        raise ValueError("a score is not a number")


class NotANumber(Right):
    def changed(self, vector, name, value):
        return math.nan


class Text(Right):
    def changed(self, vector, name, value):
        return "many"


class Silent(Right):
    def run(self, vector):
        return {}


class Unsupporting(Right):
    def supports(self, vector):
        return vector.kind == "ir"


class Infinite(Right):
    def changed(self, vector, name, value):
        return math.inf


@pytest.mark.parametrize(
    ("one", "usual", "where_none"),
    [
        (Raises(), "error", "error"),
        (Refuses(), "error", "pass"),
        (NotANumber(), "fail", "pass"),
        (Text(), "error", "pass"),
        (Silent(), "unsupported", "unsupported"),
        (Infinite(), "fail", "fail"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_bad_adapters_are_reported(one, usual, where_none):
    for row in check(one).iter_rows(named=True):
        assert row["verdict"] == (where_none if row["expected"] is None else usual)
        assert bool(row["message"]) == (usual == "error")
    assert "\n" not in "".join(check(one)["message"])


def test_what_is_not_supported_is_not_run():
    said = summary(results(Unsupporting()))
    assert said["unsupported"] == sum(vector.kind != "ir" for vector in vectors())
    assert said["pass"] == len(vectors()) - said["unsupported"]


def test_a_tolerance_is_relative_above_one():
    vector = dataclasses.replace(vectors()[0], expected={"mr": 1e6, "mrr": 0.1}, tolerance=1e-6)

    class Near(Right):
        def changed(self, vector, name, value):
            return value + (0.5 if name == "mr" else 2e-6)

    assert check(Near(), [vector])["verdict"].to_list() == ["pass", "fail"]


@pytest.mark.parametrize("name", sorted(set(ADAPTERS) - {"owkg"}))
def test_a_missing_library_is_one_error_that_names_the_package(name, monkeypatch):
    def imported(module, *_, **__):
        raise ImportError(f"no {module}")

    monkeypatch.setattr("owkg.conformance.peers.import_module", imported)
    with pytest.raises(ValueError, match=r"must name an installed library: .* pip install [\w-]+\."):
        adapter(name)


def test_an_unknown_adapter_is_refused():
    with pytest.raises(ValueError, match="must be one of owkg, pykeen"):
        adapter("pykeeen")


@pytest.mark.parametrize(
    "said", [["pass", "unsupported"], ["fail", "error"], ["unsupported"], ["pass", "fail"]]
)
def test_the_worst_verdict_counts(said):
    expected = {"pass": "pass", "fail": "error", "unsupported": "unsupported"}[said[0]]
    assert verdict_of(said) == ("fail" if said == ["pass", "fail"] else expected)


# --- the runner as a script, and the record


def test_the_runner_needs_nothing_but_the_standard_library(tmp_path):
    """In an isolated interpreter without packages it says which one to install."""
    command = [sys.executable, "-I", "-S", RUNNER, "--adapter", "pykeen", "--out", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install torch" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_the_runner_gives_what_is_recorded_of_pytrec_eval(tmp_path):
    pytest.importorskip("pytrec_eval")
    out = tmp_path / "out.json"
    subprocess.run(
        [sys.executable, RUNNER, "--adapter", "pytrec-eval", "--out", out], check=True, cwd=tmp_path
    )
    (found,) = read_results(out)
    (recorded,) = [one for one in read_results(RECORD) if one["library"] == "pytrec_eval"]
    assert runner.verdicts(found) == runner.verdicts(recorded)
    assert runner.text_of([found]) == out.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["{}x", "[1]", '[{"library": "a", "version": "1"}]', '{"a": 1}', "[[]]"])
def test_other_files_are_no_results(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=r"x\.json: must hold results"):
        read_results(tmp_path / "x.json")


def test_results_of_other_vectors_are_refused():
    with pytest.raises(ValueError, match="must have vectors of this version, got 'nothing'"):
        summary({"library": "a", "version": "1", "outcomes": [{"vector": "nothing"}]})

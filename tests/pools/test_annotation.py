"""Annotation sheets: written, filled in, read back; agreement of two annotators."""

import csv
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.ir import POOLED
from owkg.judge.schema import QRELS
from owkg.kg.names import query_text
from owkg.pools.annotation import SHEET, read_names, read_sheet, write_sheet
from owkg.pools.kappa import annotator_agreement, fleiss_kappa, kappa, majority

HEADER = "\t".join(SHEET)


def pooled(count=6):
    """Candidates to queries on both sides, with what must not be given away."""
    frame = pl.DataFrame(
        {
            "side": ["tail", "head"] * count,
            "entity": [f"e{i // 4}" for i in range(2 * count)],
            "relation": ["x|y/z"] * (2 * count),
            "answer": [f'a{i} "t"' for i in range(2 * count)],
            "depth": list(range(1, 2 * count + 1)),
        }
    )
    return frame.with_columns(query_text())


def filled(path, labels):
    """Fills in the sheet: `labels` of the rows in turn."""
    rows = list(csv.reader(io.StringIO(path.read_text()), delimiter="\t"))
    for row, label in zip(rows[1:], labels, strict=True):
        row[4] = label
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
    return rows


@given(seed=st.integers(0, 99), choice=st.integers(0, 2**31))
def test_a_sheet_comes_back_as_it_was_labelled(tmp_path_factory, seed, choice):
    words = {
        "1": 1,
        "Y": 1,
        "yes ": 1,
        "Relevant": 1,
        "0": 0,
        "n": 0,
        "NO": 0,
        "not relevant": 0,
        "?": POOLED,
    }
    path = tmp_path_factory.mktemp("sheet") / "sheet.tsv"
    frame = pooled()
    write_sheet(frame, path, seed=seed)
    labels = np.random.default_rng(choice).choice(list(words), size=len(frame))
    rows = filled(path, labels)
    found = read_sheet(path, frame)
    assert found.columns == list(QRELS)
    expected = {(row[0], row[1]): words[label] for row, label in zip(rows[1:], labels, strict=True)}
    assert {(r["query"], r["answer"]): r["relevance"] for r in found.rows(named=True)} == expected
    assert found.drop("relevance").sort(pl.all()).equals(frame.select(found.columns[:-1]).sort(pl.all()))
    assert read_sheet(path).equals(found)


def test_the_order_says_nothing(tmp_path):
    frame = pooled(20)
    orders = []
    for name, seed, given_frame in (("a", 0, frame), ("b", 0, frame.reverse()), ("c", 1, frame)):
        write_sheet(given_frame, tmp_path / name, seed=seed)
        orders.append((tmp_path / name).read_bytes())
    assert orders[0] == orders[1] != orders[2]
    sheet = pl.read_csv(tmp_path / "a", separator="\t")
    assert sheet.columns == list(SHEET)
    # The answers to a query stand together.
    changes = (sheet["question_id"] != sheet["question_id"].shift()).fill_null(True).sum()
    assert changes == sheet["question_id"].n_unique()
    depth = sheet.join(frame, left_on=["question_id", "answer_id"], right_on=["query", "answer"], how="left")
    assert not depth["depth"].is_sorted()


def test_what_annotators_read(tmp_path):
    labels, descriptions = {"e0": "Ada", "x|y/z": "parent of", 'a0 "t"': "Byron"}, {"e0": "born 1815"}
    write_sheet(pooled(1), tmp_path / "s", seed=0, labels=labels, descriptions=descriptions)
    sheet = pl.read_csv(tmp_path / "s", separator="\t").sort("question_id")
    assert sheet.select("question", "answer").rows() == [
        ("Which X makes this true: X -- parent of --> 'Ada (born 1815)'?", 'a1 "t"'),
        ("Which X makes this true: 'Ada (born 1815)' -- parent of --> X?", "Byron"),
    ]


def test_names_from_a_file(tmp_path):
    (tmp_path / "names").write_text("e0\tAda\tborn 1815\ne1\tBen\ne2\tCy\t\n")
    assert read_names(tmp_path / "names") == ({"e0": "Ada", "e1": "Ben", "e2": "Cy"}, {"e0": "born 1815"})
    (tmp_path / "names").write_text("e0\tAda\ne0\tBen\n")
    with pytest.raises(ValueError, match="names, line 2: the label 'e0'"):
        read_names(tmp_path / "names")
    (tmp_path / "names").write_text("e0\n")
    with pytest.raises(ValueError, match="names, line 1: must be a label"):
        read_names(tmp_path / "names")


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["a|r|?\tb\tq\tb\t\t"], "line 2: the label must not be blank"),
        (["a|r|?\tb\tq\tb\t1\t", "a|r|?\tc\tq\tc\tmaybe\t"], "line 3: the label must be 1, .*'maybe'"),
        (
            ["a|r|?\tb\tq\tb\t1\t", "a|r|?\tb\tq\tb\t0\t"],
            "line 3: the label of 'b' .* contradicts the label in .*line 2",
        ),
        (["a|r|?\tb\tq\tb\t1\t", "a|r|?\tb\tq\tb\t?\t"], "line 3: the label of 'b'"),
        (["a|r\tb\tq\tb\t1\t"], "line 2: the question_id must be as written"),
        (["?|r|?\tb\tq\tb\t1\t"], "line 2: the question_id must be as written"),
        (["a|r|?\t\tq\tb\t1\t"], "line 2: the answer_id"),
        (["d|r|?\tb\tq\tb\t1\t"], "line 2: the question_id must be a query of the pool, got 'd.r.."),
        (["a|r|?\tz\tq\tb\t1\t"], "line 2: the answer_id must be an answer in the pool .*'z'"),
        (["a|r|?\tb\tq\tb\t1"], "line 2: 5 fields instead of 6"),
        ([], "at least one labelled row"),
    ],
)
def test_bad_sheets(tmp_path, lines, shown):
    (tmp_path / "s.tsv").write_text("\n".join([HEADER, *lines]) + "\n")
    candidates = pl.DataFrame({"side": "tail", "entity": "a", "relation": "r", "answer": ["b", "c"]})
    with pytest.raises(ValueError, match=rf"s\.tsv.*{shown}"):
        read_sheet(tmp_path / "s.tsv", candidates.with_columns(query_text()))


def test_a_label_that_is_repeated_counts_once(tmp_path):
    (tmp_path / "s.tsv").write_text(HEADER + "\n" + "a|r|?\tb\tq\tb\t1\tsure\n" * 2)
    assert read_sheet(tmp_path / "s.tsv").select("answer", "relevance").rows() == [("b", 1)]


def test_a_column_is_missing(tmp_path):
    (tmp_path / "s.tsv").write_text("question_id\tanswer_id\na|r|?\tb\n")
    with pytest.raises(ValueError, match=r"line 1: must have the columns .*label"):
        read_sheet(tmp_path / "s.tsv")


def test_nothing_to_write(tmp_path):
    with pytest.raises(ValueError, match="at least one row"):
        write_sheet(pooled()[:0], tmp_path / "s", seed=0)
    with pytest.raises(ValueError, match="`seed`"):
        write_sheet(pooled(), tmp_path / "s", seed=-1)


def labelled(relevances):
    asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
    return pl.DataFrame([asked | {"answer": a, "relevance": g} for a, g in relevances.items()])


@given(
    pairs=st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=30),
    more=st.integers(0, 3),
)
def test_agreement_by_counting(pairs, more):
    first = {f"e{i}": one for i, (one, _) in enumerate(pairs)} | {f"f{i}": 1 for i in range(more)}
    second = {f"e{i}": two for i, (_, two) in enumerate(pairs)} | {"g": 0}
    judged = [(one, two) for one, two in pairs if POOLED not in (one, two)]
    if not judged:
        with pytest.raises(ValueError, match="got none"):
            annotator_agreement(labelled(first), labelled(second))
        return
    found = annotator_agreement(labelled(first), labelled(second))
    n = len(judged)
    observed = sum(one == two for one, two in judged) / n
    chance = sum(sum(a == g for a, _ in judged) * sum(b == g for _, b in judged) for g in range(3)) / n**2
    assert (found.candidates, found.unsure, found.unshared) == (n, len(pairs) - n, more + 1)
    assert found.agreeing == pytest.approx(observed)
    assert found.disagreements.select("first", "second").rows() == [(a, b) for a, b in judged if a != b]
    if chance == 1:
        assert np.isnan(found.kappa)
        assert np.isnan(found.standard_error)
    else:
        assert found.kappa == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)


@settings(max_examples=30)
@given(counts=st.lists(st.integers(1, 50), min_size=9, max_size=9))
def test_the_standard_error_is_that_of_the_delta_method(counts):
    """var = (sum p g^2 - (sum p g)^2) / n, g the gradient of kappa by differences."""
    table = np.array(counts, float).reshape(3, 3)
    n, p, step = table.sum(), table / table.sum(), 1e-6

    def value(p):
        chance = p.sum(1) @ p.sum(0)
        return (np.trace(p) - chance) / (1 - chance)

    gradient = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        shift = np.zeros((3, 3))
        shift[i, j] = step
        gradient[i, j] = (value(p + shift) - value(p - shift)) / (2 * step)
    variance = ((p * gradient**2).sum() - (p * gradient).sum() ** 2) / n
    found, error = kappa(table)
    assert found == pytest.approx(value(p), abs=1e-12)
    assert error == pytest.approx(np.sqrt(variance), rel=1e-5, abs=1e-9)


def test_kappa_by_hand():
    """Perfect agreement has no error; independence has kappa 0."""
    assert kappa(np.diag([3.0, 5.0])) == (1.0, pytest.approx(0, abs=1e-12))
    assert kappa(np.outer([2.0, 3.0], [4.0, 1.0]))[0] == pytest.approx(0, abs=1e-12)
    value, error = kappa(np.array([[20.0, 5.0], [10.0, 15.0]]))
    assert value == pytest.approx(0.4)
    draws = np.random.default_rng(0).multinomial(50, [0.4, 0.1, 0.2, 0.3], size=20_000).reshape(-1, 2, 2)
    share = draws / 50
    chance = np.einsum("nij,nki->n", share, share)
    spread = ((np.trace(share, axis1=1, axis2=2) - chance) / (1 - chance)).std()
    # Large-sample theory, at n = 50.
    assert error == pytest.approx(spread, rel=0.05)


def test_fleiss_kappa_of_the_published_example():
    """Fleiss (1971), as everybody copies it: 10 subjects, 14 raters, 5 relevances, kappa .210."""
    counts = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    relevances = np.array([np.repeat(np.arange(5), row) for row in counts])
    asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
    sheets = [
        pl.DataFrame(
            [asked | {"answer": f"b{i}", "relevance": int(relevance)} for i, relevance in enumerate(column)]
        )
        for column in relevances.T
    ]
    value, candidates = fleiss_kappa(sheets)
    assert (round(value, 3), candidates) == (0.210, 10)
    of_two = fleiss_kappa(sheets[:2])
    assert of_two[1] == 10
    assert np.isnan(fleiss_kappa([sheets[0]] * 2)[0]) == (relevances[:, 0].min() == relevances[:, 0].max())


def test_a_majority_is_of_those_who_judged():
    asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
    given = {"b": (1, 1, 0), "c": (1, 0, -1), "d": (-1, -1, 1), "e": (-1, -1, -1)}
    sheets = [
        pl.DataFrame(
            [asked | {"answer": name, "relevance": relevances[i]} for name, relevances in given.items()]
        )
        for i in range(3)
    ]
    found = majority([sheets[0], sheets[1], sheets[2].filter(pl.col("answer") != "e")])
    assert dict(found.select("answer", "relevance").rows()) == {"b": 1, "c": -1, "d": 1, "e": -1}
    assert dict(found.select("answer", "relevances").rows())["e"] == [-1, -1, None]


STRANGE = (
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@a",
    "'=1",
    "'x",
    "\x1b[31mred",
    "a\\b",
    "a\\\\b",
    "\\x1b",
    "\x9b2J",
    "a-b",
)


def test_nothing_in_a_sheet_is_a_command(tmp_path):
    rows = [
        {"side": side, "entity": entity, "relation": relation, "answer": answer}
        for side in ("head", "tail")
        for entity, relation, answer in zip(STRANGE, STRANGE[::-1], STRANGE[3:] + STRANGE[:3], strict=True)
    ]
    frame = pl.DataFrame(rows).with_columns(query_text())
    path = tmp_path / "sheet.tsv"
    write_sheet(frame, path, seed=0, labels={"a-b": "=1+1"}, descriptions={"+1": "\x1b[2J"})
    text = path.read_text()
    assert not any((ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 for c in text)
    header, *lines = csv.reader(io.StringIO(text), delimiter="\t")
    assert header == list(SHEET)
    assert not any(cell.startswith(tuple("=+-@")) for line in lines for cell in line)
    with path.open("w", newline="") as file:
        filled = [header, *([*line[:4], "1", ""] for line in lines)]
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(filled)
    back = read_sheet(path, frame).drop("relevance").sort("query", "answer")
    assert back.equals(frame.select(QRELS[:-1]).sort("query", "answer"))

"""Markdown, LaTeX, sentences and files of a report."""

import re
import sys
from dataclasses import replace

import polars as pl
import pytest

import owkg.report
from owkg import report
from owkg.auditing.result import HOLDS_IF_FOUND_AND_INDEPENDENT, JUDGE_FIRST, OPEN, UNSTATED, VERDICTS
from owkg.errors import ArgumentError
from owkg.report import answer, words

WITHOUT = {"sparsity": None, "correlation": None, "sparsity_from": None, "lists": None, "calibration": ""}


def cells(line):
    """Of a line of a Markdown table; escaped bars are none."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def markdown_tables(text):
    parts = [part.strip().splitlines() for part in text.split("\n\n")]
    return [[cells(line) for line in part] for part in parts if part[0].startswith("|")]


def test_markdown_holds_the_frames(audit):
    models, pairs, judged, plans, protocol = markdown_tables(report.markdown(audit))
    assert [row[0] for row in protocol[2:]] == [
        name.replace("_", " ") for name in audit.assumptions if name != "notes"
    ]
    assert len(models) == 2 + len(audit.models)
    assert len(pairs) == 2 + len(audit.pairs)
    assert len(judged) == 2 + len(audit.judged)
    assert plans[2][1:4] == ["prefixes:50", "0.010", "0.012"]
    for table in (models, pairs, judged):
        assert {len(row) for row in table} == {len(table[0])}
    for row, own in zip(models[2:], audit.models.iter_rows(named=True), strict=True):
        read = [float(text) for text in re.findall(r"[\d.]+", row[2])]
        assert read == pytest.approx([own["value"], own["ci_low"], own["ci_high"]], abs=5e-5)
    verdicts = [row[-1] for row in pairs[2:]]
    assert verdicts == [verdict or "no verdict" for verdict in audit.pairs["verdict"]]
    at = pairs[0].index("missing to reverse")
    assert [row[at] for row in pairs[2:5]] == ["34 to 51", "at least 0", "none reverse it"]


def test_markdown_begins_with_the_answer(audit):
    told = "1 of 3 comparisons holds under your assumptions, 1 is reversed on the complete test, 1 is open."
    assert report.markdown(audit).startswith(f"By mrr, {told}\n\nBy hits@10, {told}\n")


def test_columns_without_a_number_are_left_out(audit):
    models, pairs, *_ = markdown_tables(report.markdown(audit))
    assert "gamma" not in pairs[0]  # all NaN
    assert "full test" in models[0]
    columns = (f"{name}{end}" for name in ("full", "strength") for end in ("", "_low", "_high"))
    nothing = audit.models.with_columns(pl.lit(None, pl.Float64).alias(c) for c in columns)
    bare = replace(audit, models=nothing, judged=audit.judged.clear(), plans=audit.plans.clear())
    models, *_ = markdown_tables(report.markdown(bare))
    assert models[0] == ["metric", "model", "value", "queries", "answers"]


def test_markdown_escapes_what_is_active(audit, names):
    text = report.markdown(audit)
    assert names[1] not in text
    assert r"\</script\>\<script\>" in text
    assert r"a\|b\_50% \& \`c\` \$d\$" in text


def test_captions_say_what_the_numbers_rest_on(audit):
    for text in (report.markdown(audit), report.latex(audit)):
        assert text.count("a sparsity of 0.2 to 0.5 (given)") == 2
        assert text.count("a correlation of 0 to 0.1") == 2
        assert "29,003" in text
    bare = replace(audit, assumptions=audit.assumptions | WITHOUT)
    assert "the sparsities of a grid (none is stated), a correlation of 0 (none is stated" in report.markdown(
        bare
    )


def test_a_list_of_worlds_is_counted_where_it_would_be_long(make):
    text = report.markdown(make(calibration=["one world", "another"]))
    assert "with errors measured only on simulated worlds of families" in text
    assert "another" in report.html(make(calibration=["one world", "another"]))


def test_latex_is_tables_of_booktabs(audit):
    text = report.latex(audit)
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == text.count(r"\caption{") == 5
    assert r"a|b\_50\% \& `c` \$d\$" in text
    body = re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL)
    assert [len(part.strip().splitlines()) for part in body] == [
        *(len(frame) for frame in (audit.models, audit.pairs, audit.judged, audit.plans)),
        len(audit.assumptions) - 1,
    ]
    widths = {len(re.split(r"(?<!\\)&", line)) for line in body[1].strip().splitlines()}
    columns, *_ = re.findall(r"\\begin\{tabular\}\{(lll\w+)\}", text)
    assert widths == {len(columns)}


def test_latex_has_signs_and_dashes_of_its_own(audit):
    worse = audit.pairs.with_columns(
        difference=pl.lit(-0.02), ci_low=pl.lit(-0.05), p_value=pl.lit(1e-4), probability_high=pl.lit(1.0)
    )
    text = report.latex(replace(audit, pairs=worse))
    assert "$-$0.0200 {[}$-$0.0500, 0.0350{]}" in text
    assert "& $<$\u00a00.0002 &" in text
    assert "0.610 to $>$0.999" in text
    assert words.NONE not in text


def test_judged_labels_are_told_in_every_form(audit):
    told = replace(audit, assumptions=audit.assumptions | {"judged_labels": [59, 7]})
    for form in (report.markdown, report.latex):
        assert "Judged labels are included: 59 found answers, 7 ruled-out candidates." in form(told)
        assert "Judged labels" not in form(audit)
    rests = words.rests(words.prepared(told))
    assert "59 found answers" in rests["pairs"]
    assert "59 found answers" in dict(words.assumed(told.assumptions))["Lists"]


def test_missing_words_and_numbers_leave_the_report_whole(audit):
    floats = [name for name, kind in audit.pairs.schema.items() if kind == pl.Float64]
    others = ("certified", "demonstrated", "verdict")
    empty = audit.pairs.with_columns(
        *(pl.lit(None, audit.pairs.schema[name]).alias(name) for name in others),
        *(pl.lit(float(value)).alias(name) for name, value in zip(floats, ["nan", "inf"] * 9, strict=False)),
    )
    bare = replace(audit, pairs=empty, assumptions={})
    for text in (report.markdown(bare), report.latex(bare)):
        assert "nan" not in text
        assert "inf" not in text
        assert "no verdict" in text


def test_two_averages_are_two_metrics(make):
    other = make(average="queries")
    frames = {
        name: pl.concat([frame, frame.with_columns(average=pl.lit("queries"))])
        for name, frame in other.items()
        if "average" in frame.columns
    }
    both = replace(other, **frames)
    names = {row[0] for row in markdown_tables(report.markdown(both))[0][2:]}
    assert names == {f"{kind}{name}" for kind in ("", "query-averaged ") for name in ("mrr", "hits@10")}


def row_of(**values):
    names = {"first": "A", "second": "B", "certified": 34, "demonstrated": 51, "verdict": None}
    names |= {"required_queries": 5678.0, "breakdown_sparsity": 0.25, "difference": 0.1}
    names |= {"p_value": 0.01, "ci_low": 0.1}
    return names | {"probability_low": 0.6, "probability_high": 0.9} | values


def test_a_verdict_comes_with_its_reason():
    def line(verdict, **values):
        return answer.line(row_of(verdict=verdict, **values), 0.95)

    assert "at least 34 missing answers would be needed to reverse the order" in line(VERDICTS[0])
    assert "probability" not in line(VERDICTS[0])
    assert "no number of missing answers" in line(VERDICTS[0], certified=None)
    assert line(VERDICTS[1]) == "A is better on the complete test with probability 0.600 to 0.900."
    assert line(VERDICTS[2]).startswith("B is ahead on the complete test: A is better with")
    assert line(VERDICTS[4]).startswith("B is ahead on the complete test if missing and retrieved")
    better = "A is better on the complete test with probability 0.600 to 0.900"
    assert line(VERDICTS[3]) == f"If missing and retrieved answers are independent, {better}."
    assert answer.reason(row_of(verdict=VERDICTS[3]), 0.95) == f"Then {better}."
    if_found = "no more answers are missing than judging found"
    assert line(HOLDS_IF_FOUND_AND_INDEPENDENT).startswith(f"If {if_found} and missing")
    assert line(OPEN, demonstrated=None) == f"{better}, which is below 0.95."
    assert line(OPEN, probability_high=0.96).endswith("which is below 0.95 in part of the range.")
    assert "do not show the difference (p = 0.2000; about 5,678 would" in line(OPEN, p_value=0.2)
    assert line(UNSTATED, probability_low=None) == (
        "A is better on the complete test with probability 0.95 or more if the test lacks less than "
        "25.0% of the true answers, and if the correlations are in the assumed range."
    )
    assert line(OPEN, difference=0.0) == "A and B have the same value."
    assert "at every sparsity that these values allow" in line(
        UNSTATED, probability_low=None, breakdown_sparsity=None
    )
    assert "impossible under all" in line(OPEN, probability_low=None, refuted=1.0)
    assert line(HOLDS_IF_FOUND_AND_INDEPENDENT, probability_low=None).endswith(
        "with probability 0.95 or more."
    )
    assert "(p <\u00a00.0002" in line(OPEN, p_value=0.0001, ci_low=-0.1)
    assert line(JUDGE_FIRST).endswith("and 51 answers that owkg names would reverse the order.")
    assert line(None) == "There is no verdict on this pair."


def test_the_answer_of_one_comparison_and_of_none():
    assert answer.answer("mrr", [OPEN]) == "By mrr, the only comparison is open."
    assert answer.answer("mrr", []) == "By mrr, there is nothing to compare."
    assert answer.answer("mrr", [OPEN, OPEN]) == "By mrr, 2 of 2 comparisons are open."


def test_judged_labels_are_two_counts():
    told = dict(words.protocol({"judged_labels": [239, 1240], "candidates": [239, 1240]}))
    assert told["judged labels"] == "239 found answers, 1,240 ruled-out candidates"
    assert told["candidates"] == "239 to 1,240"


def test_a_lower_bound_is_no_range(audit):
    said = audit.assumptions | {"sparsity": None, "correlation": None, "sparsity_at_least": 0.3}
    said |= {"sparsity_from": "judgements of a pool", "design": "pool"}
    told = dict(words.assumed(said))
    assert told["Sparsity"].startswith(
        "at least 0.3 (judgements of a pool), with no upper end, so owkg claims"
    )
    assert told["Correlation"].startswith("not stated: 0 is assumed")
    rests = words.rests(words.prepared(replace(audit, assumptions=said)))
    assert "judging shows no more than that it is at least 0.3" in rests["models"]
    assert "they give no correlation" in rests["judged"]
    rests = words.rests(words.prepared(replace(audit, assumptions=said | {"design": "complete"})))
    assert "lower" not in rests["judged"]


def test_no_probability_is_said_to_be_0_or_1():
    assert words.chance_text(0.99999, 1.0) == ">0.999"
    assert words.chance_text(0.0, 0.25) == "<0.001 to 0.250"
    assert words.chance_text(None, 0.25) == words.NONE


def test_correlations_of_each_model_are_those_of_the_pair(audit):
    own = audit.assumptions | {"correlation": {"A": [0.0, 0.1], "B": [0.2, 0.2], "C": [0.7, 0.8]}}
    assert words.correlation_text(own, ("A", "B")) == "a correlation of 0 to 0.1 of A, 0.2 of B"
    assert words.limits(own, "A", "B") == pytest.approx([0.2, 0.5, 0.1, 0.2])
    assert words.limits(audit.assumptions, "A", "B") == pytest.approx([0.2, 0.5, -0.1, 0.1])
    assert words.limits(audit.assumptions | {"correlation": None}, "A", "B") == [0.2, 0.5, 0, 0]
    assert words.limits(WITHOUT, "A", "B") is None


def test_the_ending_says_what_is_written(audit, tmp_path):
    for name, form in (("a.md", report.markdown), ("deep/a.tex", report.latex), ("a.html", report.html)):
        report.write_report(audit, tmp_path / name)
        assert (tmp_path / name).read_text(encoding="utf-8") == form(audit)
    for name in ("a.pdf", "html", "a.HTML5"):
        with pytest.raises(ArgumentError, match=r"`path` must end with \.html, \.md, \.tex, got"):
            report.write_report(audit, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.md", "deep"]


@pytest.mark.parametrize("lost", ["altair", "vl_convert"])
def test_a_missing_package_names_the_extra(audit, tmp_path, monkeypatch, lost):
    monkeypatch.setitem(sys.modules, lost, None)
    with pytest.raises(ValueError, match=r"pip install 'owkg\[report\]'"):
        owkg.report.write_report(audit, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())
    report.write_report(audit, tmp_path / "a.md")

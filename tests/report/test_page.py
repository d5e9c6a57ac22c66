"""The page: whole, small, escaped; its tables hold the frames."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

from owkg import report
from owkg.auditing.result import VERDICTS
from owkg.report import answer, words

MOST = 3_000_000
SECTIONS = ("answer", "next", "assumed", "models", "grid", "box", "pairs", "paste", "more")


class Reader(HTMLParser):
    """Tables by caption, as rows of text; the text of each section; scripts; attributes."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.sections, self.scripts, self.tags = {}, {}, [], []
        self.caption, self.rows, self.part, self.kind = "", [], None, None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.kind = tag
        if tag == "section":
            self.part = dict(attrs)["aria-labelledby"]
            self.sections[self.part] = ""
        elif tag == "table":
            self.caption, self.rows = "", []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        if tag == "table":
            self.tables[self.caption] = self.rows
        if tag in ("section", "script"):
            self.part = self.part if tag == "script" else None
        if tag in ("caption", "thead", "tbody", "table", "script"):
            self.kind = None

    def handle_data(self, data):
        if self.part and self.kind != "script":
            self.sections[self.part] += data
        if self.kind == "script":
            self.scripts[-1] += data
        elif self.kind == "caption":
            self.caption += data
        elif self.kind in ("td", "th"):
            self.rows[-1][-1] += data.strip("\n")


@pytest.fixture(scope="module")
def text(audit):
    return report.html(audit, title="Of <b> & co")


@pytest.fixture(scope="module")
def page(text):
    return Reader(text)


def read(cell):
    return None if cell == words.NONE else float(cell.replace(",", ""))


def estimate(cell):
    return [float(part) for part in re.findall(r"-?[\d.]+", cell)]


def table(page, begin):
    (found,) = [rows for caption, rows in page.tables.items() if caption.startswith(begin)]
    return found


def test_the_page_asks_for_nothing(text, page):
    asked = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href")]
    assert asked == ["data:,"]  # the icon
    assert "default-src 'none'" in text
    assert len(text.encode()) < MOST
    assert text.count("window.vegaEmbed=") == 1  # the bundle stands there once
    assert list(page.sections) == list(SECTIONS)


def test_names_are_escaped_everywhere(text, page, names):
    assert names[1] not in text
    assert len(page.scripts) == 3  # numbers, the bundle, the page's own
    assert "<title>Of &lt;b&gt; &amp; co</title>" in text
    numbers = json.loads(page.scripts[0])
    assert {row[1] for row in numbers["models"]} == set(names)
    assert all(name in page.sections["answer"] for name in names)


def test_the_answer_counts_the_verdicts_and_has_a_step_for_each_neighbour(page, text, audit, names):
    said = page.sections["answer"]
    told = "1 of 3 comparisons holds under your assumptions, 1 is reversed on the complete test, 1 is open."
    assert [f"By {label}, {told}" in said for label in ("mrr", "hits@10")] == [True, True]
    links = re.findall(r'class="link (\w+)" data-link=(\d+)><b>(\w+)</b>', text)
    assert links == [(kind, at, kind) for kind, at in zip(["reversed", "holds"] * 2, "0235", strict=True)]
    assert said.count("ComplEx is better with probability 0.610 to 0.970.") == 2
    assert said.count(f"Models further apart: ComplEx over {names[2]} (open).") == 2


def test_assumptions_are_told_once(page, audit):
    for name, value in words.assumed(audit.assumptions):
        told = [value in section for section in page.sections.values()]
        assert told == [at == "assumed" for at in SECTIONS], name
    assert "Rests on" not in "".join(page.sections[name] for name in SECTIONS[:-1])
    assert audit.assumptions["notes"][0] in page.sections["assumed"]
    for said in ("14,505", "20,466", "realistic", "owkg: 0.1.0"):
        assert said in page.sections["more"]


def test_every_verdict_has_a_kind_and_a_definition_and_those_that_occur_a_legend(page):
    assert set(answer.KINDS) == set(answer.DEFINITIONS) == set(VERDICTS)
    assert set(answer.KINDS.values()) == set(answer.COUNTED)
    shown = page.sections["pairs"].partition("All verdicts")[0]
    told = [when in shown for when in answer.DEFINITIONS.values()]
    assert told == [verdict in (VERDICTS[0], VERDICTS[2]) for verdict in VERDICTS]


def test_tables_of_models_and_grid_are_the_frames(page, audit):
    rows = table(page, "Values of the models")[1:]
    for row, own in zip(rows, audit.models.iter_rows(named=True), strict=True):
        assert row[:2] == [own["metric"], own["model"]]
        assert estimate(row[2]) == pytest.approx([own["value"], own["ci_low"], own["ci_high"]], abs=5e-5)
        assert estimate(row[4]) == pytest.approx([own["full_low"], own["full_high"], own["full"]], abs=5e-5)
    rows = table(page, "Full-test metric")[1:]
    for row, own in zip(rows, audit.grid.iter_rows(named=True), strict=True):
        assert row[1] == own["model"]
        assert read(row[2]) == pytest.approx(own["sparsity"], abs=5e-4)
        assert estimate(row[4]) == pytest.approx([own["full"], own["full_low"], own["full_high"]], abs=5e-5)


def test_the_maps_are_the_box(page, audit):
    head, *rows = table(page, "Probability that the first")
    sparsity = [float(cell.removeprefix("sparsity ")) for cell in head[1:]]
    correlations = audit.box["correlation_difference"].n_unique()
    assert len(rows) == len(audit.pairs) * (1 + correlations)
    seen = 0
    for i, pair in enumerate(audit.pairs.iter_rows(named=True)):
        (title,), *own = rows[i * (1 + correlations) : (i + 1) * (1 + correlations)]
        assert title == f"{pair['first']} – {pair['second']}, {pair['metric']}"
        of = audit.box.filter(**{name: pair[name] for name in ("first", "second", "metric")})
        found = {
            (round(b, 6), round(float(row[0]), 6)): read(cell)
            for row in own
            for b, cell in zip(sparsity, row[1:], strict=True)
        }
        for b, r, p in of.select("sparsity", "correlation_difference", "probability").rows():
            at = found[round(b, 6), round(r, 6)]
            assert (at is None) == (p is None)
            assert p is None or at == pytest.approx(p, abs=5e-4)
            seen += 1
    assert seen == len(audit.box)
    assert None in found.values()


def test_power_and_breakdown_are_the_frames(page, audit, names):
    head, *rows = table(page, "Probability that so many queries")
    queries = [int(cell.removesuffix(" queries").replace(",", "")) for cell in head[3:]]
    every = sorted(audit.power["queries"].unique())
    assert len(queries) == 8
    assert queries[:: len(queries) - 1] == every[:: len(every) - 1]
    values = np.array([[float(cell) for cell in row[3:]] for row in rows])
    whole = audit.power["wrong_order"].to_numpy().reshape(len(rows), -1)
    assert values == pytest.approx(whole[:, [every.index(count) for count in queries]], abs=5e-5)
    assert np.array(json.loads(page.scripts[0])["power"]) == pytest.approx(whole, abs=5e-6)
    head, *rows = table(page, "Missing answers that reverse the order")
    assert head == ["metric", "first", "second", "at least", "set found", "share"]
    assert [row[3] for row in rows] == ["34", "0", "none reverses it"] * 2
    assert [row[4] for row in rows] == ["51", "none found", "none found"] * 2
    head, *rows = table(page, "Answers that would reverse")
    assert next(row for row in rows if len(row) > 1) == [f"({names[0]}, r, ?)", "tail", "e0", "<r>", "x0"]


def test_queries_required_are_one_number_everywhere(audit):
    mrr = pl.col("metric") == "mrr"
    one = audit.weights.with_columns(required_queries=pl.when(mrr).then(5678.0).otherwise("required_queries"))
    whole = Reader(report.html(replace(audit, weights=one)))
    required = {row[-2] for row in table(whole, "Pairs of models")[1:]}
    weights = {row[5] for row in table(whole, "Queries required to show")[1:] if row[3] == "mrr"}
    numbers = {f"{pair['required']:,.0f}" for pair in json.loads(whole.scripts[0])["pairs"]}
    assert required == weights == numbers == {"5,678"}


def test_tables_are_accessible(page, text):
    heads = [attrs for tag, attrs in page.tags if tag == "th"]
    assert heads
    assert all("scope" in attrs for attrs in heads)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == len(page.tables)  # each with a caption of its own
    figures = [attrs for tag, attrs in page.tags if attrs.get("role") == "img"]
    assert len(figures) == text.count("<figure>") == text.count('data-save="svg"') == 4
    assert all(attrs["aria-label"] for attrs in figures)


def test_twelve_models_and_five_metrics_are_a_small_page(make):
    names = [f"a model of some length {i}" for i in range(12)]
    metrics = ("mrr", "hits@1", "hits@3", "hits@10", "p-mrr@1/2")
    audit = make(names, metrics, sparsities=10, correlations=25, facts=50)
    text = report.html(audit)
    assert len(text.encode()) < MOST
    whole = Reader(text)
    assert len(table(whole, "Pairs of models")) == 1 + 66 * 5
    assert "left out" not in whole.sections["box"]
    assert "of 50 answers" in whole.sections["more"]


def test_queries_by_metric_and_best_weight(page, audit):
    rows = table(page, "Queries required to show")
    assert len(rows) == 1 + len(audit.weights) == 7
    assert rows[1][3:] == ["mrr", "0.1090", "640", words.NONE]
    assert rows[2][3:] == ["best weight", "0.1000", "640", "690"]
    # A lower focus that has the same best weight is the same row.
    lower = audit.weights.filter(metric="best weight").with_columns(least_focus=pl.lit(0.05))
    again = replace(audit, weights=pl.concat([audit.weights, lower]))
    assert table(Reader(report.html(again)), "Queries required to show") == rows


def test_judgements_stand_by_model_side_and_category(page):
    rows = table(page, "Results of judging")
    assert rows[0][:6] == ["model", "side", "category", "queries", "known", "found"]
    assert len(rows) == 1 + 6
    assert {tuple(row[1:3]) for row in rows[1:]} == {("all", "all"), ("head", "N-N")}
    assert "lower bounds" in page.sections["more"]


def test_larger_maps_are_thinned_and_said_to_be(make):
    audit = make([f"m{i}" for i in range(12)], ("mrr", "hits@1"), sparsities=21, correlations=61)
    text = report.html(audit)
    assert len(text.encode()) < MOST
    whole = Reader(text)
    assert "left out" in whole.sections["box"]
    assert "0" in {row[0] for row in table(whole, "Probability that the first")[1:]}


def test_an_audit_without_frames_of_pairs_is_a_page(audit):
    names = ("pairs", "grid", "box", "facts", "power", "weights", "judged", "plans")
    bare = {name: getattr(audit, name).clear() for name in names}
    whole = Reader(report.html(replace(audit, **bare)))
    assert list(whole.sections) == list(SECTIONS)
    assert "there is nothing to compare" in whole.sections["answer"]
    assert "Try other assumptions" not in whole.sections["assumed"]
    nothing = audit.models.with_columns(pl.lit(float("nan")).alias(name) for name in ("full", "value"))
    text = report.html(replace(audit, models=nothing))
    assert json.loads(Reader(text).scripts[0])["models"][0][2] is None


def test_the_head_says_what_the_report_is_of(text, make):
    head = text.partition("<header>")[2].partition("</header>")[0]
    assert "Of &lt;b&gt; &amp; co" in head
    assert "<h1>Is the ranking of these 3 models safe?</h1>" in head
    dated = report.html(make(NAMES), date="2026-11-28")
    assert "20,466 queries · 29,003 answers · 2026-11-28 · owkg 0.1.0" in dated
    assert "<title>Is the ranking of these 2 models safe?</title>" in dated


NAMES = ("ComplEx", "TransE")


def test_what_to_paste_has_the_numbers_of_the_audit(make):
    whole = Reader(report.html(make(NAMES, ("mrr",)))).sections["paste"]
    assert "By mrr, ComplEx scores 0.4000 [0.3900, 0.4100] and TransE 0.3800 [0.3700, 0.3900]" in whole
    assert "difference 0.0200 [0.0050, 0.0350], p = 0.0123)" in whole
    assert "At least 34 missing answers would be needed to reverse this order" in whole
    assert "with probability 0.610 to 0.970" in whole
    assert r"\textsc{ComplEx} & 0.400 {[}0.390, 0.410{]} & 0.550 {[}0.450, 0.650{]}" in whole


def test_the_next_steps_follow_from_the_verdicts(make):
    made = make(NAMES, ("mrr",))

    def steps(**columns):
        said = columns.pop("said", {})
        pairs = made.pairs.with_columns(pl.lit(value).alias(name) for name, value in columns.items())
        ready = words.prepared(replace(made, pairs=pairs, assumptions=made.assumptions | said))
        return " ".join(answer.steps(ready, 0))

    assert steps(verdict=VERDICTS[0]).startswith("Nothing more is needed")
    first = steps(verdict="open: judge these candidates first")
    assert first.startswith("Judge the 51 answers that would put TransE ahead of ComplEx.")
    assert "Argue for a sparsity of at most 0.42" in first
    unsure = steps(verdict="open", p_value=0.4, required_queries=30_000.0)
    assert "Test about 30,000 queries instead of 20,466" in unsure
    assert "Argue" not in unsure
    assert "State the range of the sparsity" in steps(verdict="open", said={"sparsity": None})
    assert "State the correlation" in steps(verdict=VERDICTS[3], said={"correlation": None})

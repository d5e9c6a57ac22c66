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
from owkg.report import words

MOST = 3_000_000
SECTIONS = ("verdicts", "models", "grid", "box", "breakdown", "power", "pairs", "judged", "plans", "protocol")


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
    assert all(name in page.sections["verdicts"] for name in names)


def test_each_figure_and_result_says_what_it_rests_on(page, audit):
    rests = words.rests(words.prepared(audit))
    for name in ("verdicts", "models", "grid", "box", "breakdown", "power", "pairs"):
        assert rests[name] in page.sections[name]
        assert rests[name].startswith("Rests on")
    assert audit.assumptions["notes"][0] in page.sections["verdicts"]
    for said in ("14,505", "20,466", "realistic", "owkg: 0.1.0"):
        assert said in page.sections["protocol"]
    for row in words.prepared(audit).pairs.iter_rows(named=True):
        assert words.pair_rests(row, audit.assumptions) in page.sections["verdicts"]


def test_tables_of_models_and_grid_are_the_frames(page, audit):
    rows = table(page, "Values of the models")[1:]
    for row, own in zip(rows, audit.models.iter_rows(named=True), strict=True):
        assert row[:2] == [own["metric"], own["model"]]
        assert estimate(row[2]) == pytest.approx([own["value"], own["ci_low"], own["ci_high"]], abs=5e-5)
        assert estimate(row[4]) == pytest.approx([own["full"], own["full_low"], own["full_high"]], abs=5e-5)
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
    assert queries == sorted(audit.power["queries"].unique())
    values = np.array([[float(cell) for cell in row[3:]] for row in rows])
    whole = audit.power["wrong_order"].to_numpy().reshape(values.shape)
    assert values == pytest.approx(whole, abs=5e-5)
    head, *rows = table(page, "Answers that turn the order")
    assert head == ["metric", "first", "second", "certified", "demonstrated", "share"]
    assert [row[3] for row in rows] == ["34", "0", "no number turns it"] * 2
    assert [row[4] for row in rows] == ["51", "none found", "none found"] * 2
    head, *rows = table(page, "Facts that, were they true")
    assert next(row for row in rows if len(row) > 1) == [f"({names[0]}, r, ?)", "tail", "e0", "<r>", "x0"]


def test_verdicts_are_counted(page):
    head, *rows = table(page, "Pairs by verdict")
    assert head == ["metric", VERDICTS[0], VERDICTS[2], "no verdict"]
    assert rows == [[name, "1", "1", "1"] for name in ("mrr", "hits@10")]


def test_tables_are_accessible(page, text):
    heads = [attrs for tag, attrs in page.tags if tag == "th"]
    assert heads
    assert all("scope" in attrs for attrs in heads)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == len(page.tables)  # each with a caption of its own
    figures = [attrs for tag, attrs in page.tags if attrs.get("role") == "img"]
    assert len(figures) == text.count("<figure>") == 4
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
    assert "of 50 answers" in whole.sections["breakdown"]


def test_queries_by_metric_and_best_weight(page, audit):
    rows = table(page, "Queries required to show")
    assert len(rows) == 1 + len(audit.weights) == 7
    assert rows[1][3:] == ["mrr", "0.1090", "640", words.NONE]
    assert rows[2][3:] == ["best weight", "0.1000", "640", "690"]


def test_judgements_stand_by_model_side_and_category(page):
    rows = table(page, "What judgements say")
    assert rows[0][:6] == ["model", "side", "category", "queries", "known", "found"]
    assert len(rows) == 1 + 6
    assert {tuple(row[1:3]) for row in rows[1:]} == {("all", "all"), ("head", "N-N")}
    assert "lower bounds" in page.sections["judged"]


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
    assert list(whole.sections) == [name for name in SECTIONS if name not in ("judged", "plans")]
    nothing = audit.models.with_columns(pl.lit(float("nan")).alias(name) for name in ("full", "value"))
    text = report.html(replace(audit, models=nothing))
    assert json.loads(Reader(text).scripts[0])["models"][0][2] is None

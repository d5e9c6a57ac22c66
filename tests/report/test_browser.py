"""The page in a browser: opened from disk, without a network."""

import re
import shutil
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest

from owkg import report
from owkg.auditing.tables import GIVEN, Box, _verdicts
from owkg.report.answer import kind_of

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
FIGURES = ["chart-models", "chart-grid", "chart-box", "chart-power"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "audit.html"
    report.write_report(audit, path)
    return path


class Opened:
    """A page, what it asked for, and what went wrong on it."""

    def __init__(self, context, path):
        self.asked, self.wrong = [], []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.goto(path.as_uri())
        self.drawn()

    def drawn(self):
        self.page.wait_for_selector("body[data-drawn]", timeout=30_000)

    def of(self, name, attribute="d", marks="path"):
        """An attribute of the marks of a figure."""
        return self.page.eval_on_selector_all(
            f"#{name} svg {marks}", f"(found) => found.map((mark) => mark.getAttribute('{attribute}'))"
        )


@pytest.fixture
def opened(browser, file):
    """Opens the page, or another file."""
    contexts = []

    def do(path=file, **options):
        contexts.append(browser.new_context(offline=True, **options))
        return Opened(contexts[-1], path)

    yield do
    for context in contexts:
        context.close()


def labels(shown, name):
    return shown.page.eval_on_selector_all(
        f"#{name} svg text", "(found) => found.map((text) => text.textContent)"
    )


def cells(shown, row):
    """Of a row of a table, by what finds it."""
    return shown.page.eval_on_selector_all(f"{row} td", "(found) => found.map((cell) => cell.innerText)")


def test_every_chart_is_drawn_from_the_file_alone(opened, file):
    shown = opened()
    assert shown.asked == [file.as_uri()]
    assert shown.wrong == []
    drawn = shown.page.eval_on_selector_all(
        ".chart", "(all) => all.map((chart) => [chart.id, chart.querySelectorAll('svg').length])"
    )
    assert drawn == [[name, 1] for name in FIGURES]
    assert all(len(shown.of(name)) > 5 for name in FIGURES)
    assert shown.page.evaluate("typeof alert.called") == "undefined"


def test_names_are_text(opened, names):
    shown = opened()
    assert shown.page.evaluate("document.scripts.length") == 3
    assert names[1] in shown.page.inner_text("main")
    assert shown.page.eval_on_selector_all("#pair option", "(all) => all.map((one) => one.text)") == [
        f"{names[0]} – {names[1]}",
        f"{names[0]} – {names[2]}",
        f"{names[1]} – {names[2]}",
    ]
    assert names[0] in labels(shown, "chart-models")


@pytest.mark.parametrize(
    ("scheme", "first", "other"), [("light", "light", "dark"), ("dark", "dark", "light")]
)
def test_the_theme_is_that_of_the_system_until_it_is_changed(opened, scheme, first, other):
    shown = opened(color_scheme=scheme)
    ink = {"light": "rgb(27, 30, 35)", "dark": "rgb(232, 234, 238)"}
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}

    def colours():
        words = shown.page.eval_on_selector_all(
            ".chart svg .role-axis-label text", "(all) => all.map((text) => getComputedStyle(text).fill)"
        )
        return set(words), shown.page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert colours() == ({ink[first]}, paper[first])
    shown.page.click("#theme")
    assert colours() == ({ink[other]}, paper[other])
    shown.page.click("#theme")
    assert colours() == ({ink[first]}, paper[first])
    assert shown.wrong == []


def test_another_pair_has_another_map(opened, audit, names):
    shown = opened()

    def chances():
        told = [label or "" for label in shown.of("chart-box", "aria-label", ".mark-rect path")]
        return sorted(float(label.rpartition("P(first better): ")[2]) for label in told if "better" in label)

    def own(first, second):
        box = audit.box.filter(first=first, second=second, metric="mrr")
        box = box.filter(pl.col("correlation_difference").abs() < 0.25)  # the map is cropped
        return sorted(box["probability"].drop_nulls())

    assert chances() == pytest.approx(own(names[0], names[1]), abs=5.1e-4)
    assert f"{names[0]} and {names[1]}" in shown.page.get_attribute("#chart-box", "aria-label")
    shown.page.select_option("#pair", label=f"{names[1]} – {names[2]}")
    shown.drawn()
    assert chances() == pytest.approx(own(names[1], names[2]), abs=5.1e-4)
    assert own(names[0], names[1]) != pytest.approx(own(names[1], names[2]), abs=1e-2)
    assert f"{names[1]} and {names[2]}" in shown.page.get_attribute("#chart-box", "aria-label")
    assert shown.page.text_content("#table-box tbody:not([hidden]) th").startswith(names[1])


def test_another_metric_keeps_the_pair_and_changes_all(opened, names):
    shown = opened()
    shown.page.select_option("#pair", label=f"{names[0]} – {names[2]}")
    shown.drawn()
    before = {name: (shown.of(name), labels(shown, name)) for name in ("chart-models", "chart-grid")}
    shown.page.select_option("#metric", label="hits@10")
    shown.drawn()
    assert shown.page.input_value("#pair") == "4"
    assert {name: (shown.of(name), labels(shown, name)) for name in before} != before
    rows = shown.page.eval_on_selector_all(
        "#table-pairs tbody tr",
        "(all) => all.filter((row) => row.offsetParent).map((row) => row.textContent)",
    )
    assert len(rows) == 3
    assert all(row.startswith("hits@10") for row in rows)
    assert shown.page.inner_text(".card:not([hidden]) .sentence").startswith("By hits@10, 1 of 3")
    assert shown.wrong == []


def test_a_table_opens_and_is_read(opened, audit):
    shown = opened()
    table = shown.page.locator("details:has(#table-box)")
    assert not table.locator("#table-box").is_visible()
    table.locator("summary").click()
    assert table.locator("#table-box").is_visible()
    row = shown.page.locator("#table-box tbody:not([hidden]) tr").nth(3)
    own = audit.box.head(35).sort("correlation_difference", "sparsity")["probability"].to_list()
    assert [float(text) for text in row.locator("td").all_inner_texts()] == pytest.approx(
        own[10:15], abs=5e-4
    )


def test_a_phone_scrolls_tables_and_not_the_page(opened):
    shown = opened(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    shown.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    wide = shown.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide == [360, 360]
    beyond = shown.page.eval_on_selector_all(
        ".scroll", "(all) => all.filter((part) => part.scrollWidth > part.clientWidth).length"
    )
    assert beyond > 2
    charts = shown.page.eval_on_selector_all(
        ".chart svg", "(all) => all.map((svg) => svg.getBoundingClientRect().width)"
    )
    assert max(charts) <= 360
    assert min(charts) > 250


def test_paper_is_light_and_hides_nothing(opened):
    from playwright.sync_api import expect

    shown = opened(color_scheme="dark")
    closed = shown.page.locator("details:not([open])").count()
    assert closed > 3
    shown.page.emulate_media(media="print", color_scheme="dark")
    shown.page.wait_for_selector("details:not([open])", state="detached")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.page.locator(".bar").is_visible()
    rows = shown.page.eval_on_selector_all(
        "[data-place]", "(all) => all.every((part) => part.getClientRects().length > 0)"
    )
    assert rows  # of every metric, not of the chosen one
    fills = shown.page.eval_on_selector_all(
        ".chart svg .role-axis-label text", "(all) => all.map((text) => getComputedStyle(text).fill)"
    )
    assert set(fills) == {"rgb(0, 0, 0)"}
    assert shown.page.pdf().startswith(b"%PDF")
    shown.page.emulate_media(media="screen")
    expect(shown.page.locator("details:not([open])")).to_have_count(closed)


def test_sixty_six_pairs_are_drawn(opened, make, tmp_path):
    names = [f"a model of some length {i}" for i in range(12)]
    report.write_report(make(names, sparsities=10, correlations=25), tmp_path / "many.html")
    shown = opened(tmp_path / "many.html")
    assert shown.page.locator("#pair option").count() == 66
    shown.page.select_option("#pair", index=65)
    shown.drawn()
    assert shown.wrong == []
    assert all(len(shown.of(name)) > 5 for name in FIGURES)
    assert shown.page.locator("#table-box tbody:not([hidden])").count() == 1
    assert shown.page.locator(".card:not([hidden]) .link").count() == 11


def test_where_nothing_is_stated_nothing_is_shaded_or_outlined(opened, make, tmp_path):
    audit = make(sparsity=None, correlation=None, queries=None)
    empty = [pl.lit(None, pl.Float64).alias(name) for name in audit.models.columns if "full" in name]
    report.write_report(replace(audit, models=audit.models.with_columns(empty)), tmp_path / "none.html")
    shown, stated = opened(tmp_path / "none.html"), opened()
    assert shown.wrong == []
    # The band of the sparsity; the outline, its halo, and the hatching around it.
    for name, more in (("chart-grid", 1), ("chart-box", 6)):
        rectangles = [len(each.of(name, "fill", ".mark-rect path")) for each in (shown, stated)]
        assert rectangles[1] - rectangles[0] == more
    hatched = [
        each.of("chart-box", "fill", ".mark-rect path").count("url(#hatch)") for each in (shown, stated)
    ]
    assert hatched == [0, 4]
    points = [len(each.of("chart-models", "fill", ".mark-symbol path")) for each in (shown, stated)]
    assert points == [3, 6]


def test_an_audit_without_pairs_draws_what_there_is(opened, audit, tmp_path):
    bare = {name: getattr(audit, name).clear() for name in ("pairs", "box", "facts", "power")}
    report.write_report(replace(audit, **bare), tmp_path / "bare.html")
    shown = opened(tmp_path / "bare.html")
    assert shown.wrong == []
    assert len(shown.of("chart-models")) > 5
    assert not shown.page.locator("#chart-box").is_visible()
    assert not shown.page.locator("#point").is_visible()


def test_nothing_else_runs_on_the_page(opened, audit, tmp_path):
    """The policy lets the page's own scripts and style run, by their sums, and nothing that got into it."""
    path = tmp_path / "page.html"
    whole = report.html(audit)
    policy = re.search('Content-Security-Policy" content="([^"]*)"', whole)[1]
    assert "unsafe" not in policy
    added = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    path.write_text(whole.replace("<main>", f"<main>{added}<style>body {{ display: none }}</style>"))
    shown = opened(path)
    assert shown.page.title() == "Is the ranking of these 3 models safe?"
    assert shown.page.is_visible("h1")
    assert len([text for text in shown.wrong if "Content Security Policy" in text]) >= 3


def test_a_tooltip_has_a_style(opened):
    shown = opened()
    shown.page.hover("#chart-models svg .mark-symbol path >> nth=0")
    tooltip = shown.page.wait_for_selector("#vg-tooltip-element.visible")
    style = tooltip.evaluate("(one) => [getComputedStyle(one).position, getComputedStyle(one).zIndex]")
    assert style == ["fixed", "1000"]
    assert shown.wrong == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_answer_is_on_the_first_screen(opened, width):
    shown = opened(viewport={"width": width, "height": 800})
    card = shown.page.locator(".card:not([hidden])").bounding_box()
    assert 0 < card["y"] < card["y"] + card["height"] <= 800
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width


def test_other_assumptions_change_the_answer_and_back(opened, audit, names):
    shown = opened()
    card = shown.page.locator(".card:not([hidden])")
    before, starts = card.inner_text(), shown.page.locator("#inputs output").all_inner_texts()
    assert starts == ["0.20", "0.60", "-0.10", "0.10"]  # the grid around 0.2 to 0.5, and -0.1 to 0.1
    for key, name in (("Home", "sparsity-to"), ("End", "correlation-from")):
        shown.page.focus(f"#{name}")
        shown.page.keyboard.press(key)
    ends = shown.page.locator("#inputs output").all_inner_texts()
    assert ends == ["0.00", "0.00", "0.30", "0.30"]  # the other end goes along
    box = audit.box.filter(first=names[0], second=names[1], metric="mrr", sparsity=0.0)
    assert box.filter(pl.col("correlation_difference") > 0.25)["probability"].to_list() == [None]
    # Certified are 34 answers, and none is missing at a sparsity of 0.
    assert f"{names[0]} stays ahead: at least 34 missing answers" in card.inner_text()
    shown.page.focus("#sparsity-from")
    shown.page.keyboard.press("End")
    told = audit.box.filter(first=names[0], second=names[1], metric="mrr", sparsity=0.8)
    told = told.filter(pl.col("correlation_difference") > 0.25)["probability"].item()
    assert 0.0001 < told < 0.0005
    better = f"{names[0]} is better on the complete test with probability less than 0.001."
    assert f"{names[1]} is ahead on the complete test: {better}" in card.inner_text()
    assert "By mrr, 1 of 3 comparisons holds under these assumptions, 2 are reversed" in card.inner_text()
    shown.page.click("#back")
    assert card.inner_text() == before
    assert shown.page.locator("#inputs output").all_inner_texts() == starts
    assert shown.wrong == []


MOVE = """([name, i]) => {
  for (const end of ["from", "to"]) document.getElementById(`${name}-${end}`).value = i;
  document.getElementById(`${name}-to`).dispatchEvent(new Event("input", { bubbles: true }));
}"""


def test_other_assumptions_follow_the_rules_of_the_audit(opened, make, tmp_path):
    found, known = 40, 29_003
    made = make(metrics=("mrr",), judged_labels=[found, 7])
    report.write_report(made, tmp_path / "judged.html")
    shown = opened(tmp_path / "judged.html")
    order = made.models["model"].to_list()
    seen = set()
    for i, sparsity in enumerate([0.0, 0.2, 0.4, 0.6, 0.8]):
        for j, correlation in enumerate([-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]):
            at = (pl.col("sparsity") - sparsity).abs() + (
                pl.col("correlation_difference") - correlation
            ).abs()
            chance = made.box.filter(at < 1e-6)["probability"]
            pairs = made.pairs.with_columns(probability_low=chance, probability_high=chance)
            box = Box((sparsity, sparsity), {}, {"sparsity": GIVEN, "correlation": GIVEN})
            told = _verdicts(pairs, box, known, 0.95, found)
            kinds = dict(zip(pairs.select("first", "second").rows(), map(kind_of, told), strict=True))
            shown.page.evaluate(MOVE, ["sparsity", i])
            shown.page.evaluate(MOVE, ["correlation", j])
            links = shown.page.locator(".card:not([hidden]) .link b").all_text_contents()
            assert links == [kinds[pair] for pair in pairwise(order)], (sparsity, correlation)
            seen |= set(links)
    assert seen == {"holds", "reversed", "open"}


def test_the_cross_rewrites_one_sentence(opened, audit, names):
    shown = opened()

    def own(sparsity, correlation):
        box = audit.box.filter(first=names[0], second=names[1], metric="mrr")
        at = (pl.col("sparsity") - sparsity).abs() + (pl.col("correlation_difference") - correlation).abs()
        chance = box.filter(at < 1e-6)["probability"].item()
        return f"{names[0]} is better on the complete test with probability {chance:.3f}."

    point = shown.page.locator("#point")
    assert point.inner_text().startswith("If 40 % of the true answers are missing")
    assert own(0.4, 0.0) in point.inner_text()
    shown.page.focus("#point-x")
    shown.page.keyboard.press("ArrowRight")
    shown.page.focus("#point-y")
    shown.page.keyboard.press("ArrowLeft")
    assert f"0.10 below that of {names[0]}" in point.inner_text()
    assert own(0.6, -0.1) in point.inner_text()
    cells = shown.page.locator("#chart-box svg .mark-rect path[aria-label*='P(first better)']")
    cells.first.hover()
    assert point.inner_text().startswith("If 0 % of the true answers are missing")
    assert shown.wrong == []


def test_pairs_are_sorted_by_a_column(opened):
    shown = opened()

    def column(i):
        return shown.page.eval_on_selector_all(
            "#table-pairs tbody tr:not([hidden])", f"(rows) => rows.map((row) => row.cells[{i}].innerText)"
        )

    button = shown.page.locator("#table-pairs th:nth-child(9) button")
    button.press("Enter")
    assert column(8) == ["at least 0", "34 to 51", "none reverse it"]
    button.press("Enter")
    assert column(8) == ["none reverse it", "34 to 51", "at least 0"]
    assert shown.page.get_attribute("#table-pairs th:nth-child(9)", "aria-sort") == "descending"


def test_a_figure_is_saved_with_its_colours(opened, tmp_path):
    shown = opened(accept_downloads=True)
    for form, begin in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with shown.page.expect_download() as saving:
            shown.page.click(f"figure:has(#chart-box) [data-save={form}]")
        assert saving.value.suggested_filename == f"audit-box.{form}"
        saving.value.save_as(tmp_path / form)
        assert (tmp_path / form).read_bytes().startswith(begin)
    text = (tmp_path / "svg").read_text(encoding="utf-8")
    assert "var(" not in text
    assert 'id="hatch"' in text
    assert shown.wrong == []


def test_paper_cuts_no_column(opened):
    shown = opened(viewport={"width": 700, "height": 1000})  # A4 with its margins
    shown.page.emulate_media(media="print")
    shown.page.wait_for_selector("details:not([open])", state="detached")
    cut = shown.page.eval_on_selector_all(
        "table, svg, pre, dl",
        "(all) => all.filter((one) => one.getBoundingClientRect().right > 700.5).map((one) => one.id)",
    )
    assert cut == []
    assert shown.page.locator("#table-pairs th:first-child").first.is_visible()  # all metrics are printed


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened, scheme):
    """Contrast of WCAG 2.1, 1.4.3, of every text that is not within a figure."""
    shown = opened(color_scheme=scheme)
    shown.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    low = shown.page.evaluate(CONTRAST)
    assert low == []


CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((x) => x / 255)
    .map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), low = [];
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !one.getClientRects().length || one.closest("svg")) continue;
    const ink = light(parts(getComputedStyle(one).color)), paper = light(ground(one));
    const [a, b] = [ink, paper].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${one.tagName}: ${walker.currentNode.data}`);
  }
  return low;
}"""

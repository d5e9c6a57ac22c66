"""The documentation as a site: built without warnings, read in a browser at three widths, no network."""

import ast
import functools
import http.server
import json
import posixpath
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import owkg
from owkg import theory

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = (
    "index.html",
    "get_started/install.html",
    "get_started/lessons/3_reversed.html",
    "how_to/tasks/leaderboard.html",
    "how_to/judging.html",
    "understand/audit.html",
    "understand/incomplete.html",
    "understand/theory.html",
    "reference/api/auditing.html",
    "reference/commands/metrics.html",
    "reference/catalogue.html",
    "evidence/errata.html",
    "evidence/performance.html",
    "evidence/notebooks/audit.html",
)
# Folders whose pages are made when the site is built.
MADE = ("notebooks", "api", "commands")
# Terms of the glossary that are everyday words, too.
HOMOGRAPHS = {"chunk", "conflict", "design", "gap", "key", "look", "prefix", "run", "seed", "template"}

pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install 'owkg[docs]'")
pytest.importorskip("myst_nb", reason="myst-nb is not installed: pip install 'owkg[docs]'")
from sphinx.util.inventory import InventoryFile  # noqa: E402


def public():
    """By module, the names that people import; read, not imported, which takes long."""
    names = {"owkg": [name for name in owkg.__all__ if name in owkg._DOORS and name != "__version__"]}
    for name in set(owkg.__all__) - set(owkg._DOORS):
        path = ROOT / "owkg" / name / "__init__.py"
        tree = ast.parse(
            (path if path.exists() else ROOT / "owkg" / f"{name}.py").read_text(encoding="utf-8")
        )
        lists = (
            one.value for one in tree.body if isinstance(one, ast.Assign) and one.targets[0].id == "__all__"
        )
        names[f"owkg.{name}"] = [word for values in lists for word in ast.literal_eval(values)]
    return names


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", out / "trees"]
    done = subprocess.run([*line, ROOT / "docs", out / "html"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "html"


class Page(HTMLParser):
    """A page: links with their words, anchors, and prose with what of it links to the glossary."""

    closed = ("h1", "h2", "h3", "h4", "a", "code", "pre", "figcaption", "label", "script", "style")

    def __init__(self, path):
        super().__init__()
        self.links, self.sources, self.ids, self.prose = [], [], set(), []
        self.within, self.article = [], False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.article |= tag == "article"
        self.ids.add(given.get("id"))
        self.sources += [given["src"]] if given.get("src") else []
        if tag == "a" and given.get("href"):
            self.links.append([given["href"], ""])
        if tag not in ("br", "img", "input", "hr", "meta", "link", "source", "col"):
            self.within.append((tag, given.get("class") or ""))

    def handle_endtag(self, tag):
        self.article &= tag != "article"
        while self.within and self.within.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tags = [tag for tag, _ in self.within]
        if "a" in tags and self.links:
            self.links[-1][1] += data
        is_term = any(tag == "a" and "term" in name.split() for tag, name in self.within)
        free = not any(tag in self.closed or "math" in name.split() for tag, name in self.within)
        if self.article and "toctree-wrapper" not in " ".join(name for _, name in self.within):
            self.prose += [(data, is_term)] if free or is_term else []


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_links_stay_in_the_site(site, pages):
    """Every link to a page, an anchor or a file of the site has one."""
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for link in (*page.sources, *(href for href, _ in page.links)):
            if link.startswith(("http:", "https:", "data:", "mailto:")) or "?" in link:
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            known = pages[target].ids if target in pages else ()
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in known):
                broken.append((path.relative_to(site).as_posix(), link))
    assert broken == []


def test_no_link_of_a_page_is_left_out(site, pages):
    """What is a link in the source is one, with the same words, in the site."""
    lost = []
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.relative_to(ROOT / "docs").with_suffix(".html")
        copied = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}.get(page.stem)
        text = (ROOT / copied if copied else path).read_text(encoding="utf-8")
        prose = re.sub(r"^```.*?^```|^:::.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
        prose = re.sub(r"`[^`\n]*`(?![^\[\n]*\]\()", "", prose)
        said = Counter(re.sub(r"\W", "", words) for _, words in pages[site / page].links)
        for words in re.findall(r"(?<!!)\[([^\]]+)\]\([^)\s]+\)", prose):
            word = re.sub(r"\W", "", words)
            said[word] -= 1
            if said[word] < 0:
                lost.append((page.as_posix(), words))
    assert lost == []


def test_the_interface_is_indexed_and_typed(site, pages):
    """Every public name has an anchor; every function says types of its parameters and what it returns."""
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    anchors = {
        name: item.uri
        for kind, items in inventory.items()
        if kind.startswith("py:")
        for name, item in items.items()
    }
    names = {f"{module}.{name}" for module, own in public().items() for name in own}
    assert names - set(anchors) == set()
    assert len(anchors) > 600
    for name in names:
        page, _, anchor = anchors[name].partition("#")
        assert (anchor.replace("$", name) or name) in pages[site / page].ids, name
    untyped, silent, seen = [], [], 0
    entry = re.compile(
        r'<dl class="py function">\n<dt[^>]* id="([^"]+)">(.*?)</dt>\n<dd>(.*?)</dd></dl>\n', re.DOTALL
    )
    for path in (site / "reference" / "api").glob("*.html"):
        for name, head, body in entry.findall(path.read_text(encoding="utf-8")):
            seen += 1
            if "The same as" in body:
                continue
            for one in re.findall(r'<em class="sig-param">(.*?)</em>', head, re.DOTALL):
                words = re.sub("<[^>]+>", "", one)
                untyped += [(name, words)] if ":" not in words and words not in ("*", "/") else []
            returned = re.sub("<[^>]+>", "", head.partition('class="sig-return"')[2])
            untyped += [(name, "returns")] if not returned else []
            if "→ None¶" not in unescape(returned) and "Returns" not in body and "Yields" not in body:
                silent.append((name, returned))
    assert seen > 280
    assert untyped == []
    assert silent == []


SEARCH = """
const at = process.argv[1];
const read = (name) => require("fs").readFileSync(at + "/" + name, "utf8");
globalThis.document = { getElementById: () => null };
globalThis.window = globalThis;
globalThis.localStorage = { setItem() {} };
globalThis.DOCUMENTATION_OPTIONS = {};
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
globalThis._ = (text) => text;
globalThis._ready = () => {};
const source = ["base-stemmer.js", "english-stemmer.js", "language_data.js", "searchtools.js"];
const text = source.map((name) => read("_static/" + name)).join("\\n");
const found = new Function("queries", text.replace(/_removeChildren\\(document[^;]*;/g, "") + `
  Search._index = null; Search.setIndex = (index) => { Search._index = index; };
  ${read("searchindex.js")}
  return queries.map((query) => Search._performSearch(...Search._parseQuery(query)).reverse().slice(0, 3));
`)(process.argv.slice(2));
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("evaluate", "reference/api/owkg.html#owkg.evaluate"),
        ("audit", "reference/api/owkg.html#owkg.audit"),
        ("macro-mrr", "reference/catalogue.html#index-"),
        ("hits@10", "reference/catalogue.html#index-"),
    ],
)
def test_a_search_finds_the_function_or_the_metric_first(site, query, first):
    done = subprocess.run(["node", "-e", SEARCH, site, query], capture_output=True, text=True, check=True)
    ((page, _, anchor, *_), *_), *_ = json.loads(done.stdout)
    assert f"{page}.html{anchor}".startswith(first), done.stdout


def test_terms_are_linked_where_a_page_first_uses_them(site, pages):
    """Before the first link to a term of the glossary, the term is not in the prose of a page."""
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)
    terms = {term.strip() for row in rows if row != "Term" for term in row.split(",")} - HOMOGRAPHS
    assert len(terms) > 60
    late, linked = [], 0
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.relative_to(ROOT / "docs").with_suffix("").as_posix()
        if (
            page in ("reference/glossary", "reference/catalogue", "project/changelog")
            or path.parent.name in MADE
        ):
            continue
        for term in terms:
            word = re.compile(rf"(?<![\w-])(?<!owkg ){re.escape(term)}(?:s|es)?(?![\w-])", re.IGNORECASE)
            uses = [of for text, of in pages[site / f"{page}.html"].prose if word.search(text)]
            linked += any(uses)
            if uses and not uses[0]:
                late.append((page, term))
    assert linked > 400
    assert late == []


@pytest.fixture(scope="module")
def window(site):
    """A window of a browser on the site, the address of the site, and what went wrong in the window."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler, wrong = functools.partial(Quiet, directory=str(site)), []
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_api.sync_playwright() as play,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
        # Leaving a page aborts what it still asks for.
        page.on("requestfailed", lambda one: wrong.append(one.url) if "ABORTED" not in one.failure else None)
        page.on("request", lambda one: None if one.url.startswith((base, "data:")) else wrong.append(one.url))
        yield page, base, wrong
        browser.close()
        server.shutdown()


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_page_is_wider_than_the_window(window, width):
    """Nor asks for anything elsewhere, or reports an error."""
    page, base, wrong = window
    page.set_viewport_size({"width": width, "height": 800})
    for name in PAGES:
        page.goto(base + name)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, name
    assert wrong == []


def test_the_search_of_the_site_finds(window):
    page, base, wrong = window
    page.goto(base + "search.html?q=breakdown+number")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert "audit" in page.inner_text("#search-results").lower()
    assert wrong == []


def test_the_figure_says_what_theory_computes(window):
    page, base, wrong = window
    page.goto(base + "understand/incomplete.html")
    slide = """(given) => {
        const slider = (name) => document.querySelector(`[data-name=${name}]`);
        for (const [name, at] of Object.entries(given)) slider(name).value = at;
        document.querySelector(".incomplete").dispatchEvent(new Event("input"));
        return document.querySelector(".incomplete .sentence").textContent;
    }"""
    said = page.evaluate(slide, {"a": 14, "b": 13, "sparsity": 3, "answers": 4, "correlation": 2})
    world = {"sparsity": 0.4, "num_answers": 20, "num_entities": 14_505}
    setting = {"strength": 0.7, "other_strength": 0.75} | world
    queries = theory.required_queries("mrr", inconsistency=0.05, **setting)
    chance = theory.inconsistency_probability("mrr", num_queries=1000, **setting)
    needed = int(re.search(r"It takes ([\d,]+) queries", said)[1].replace(",", ""))
    assert needed == pytest.approx(queries, rel=0.005)  # the figure has means of five digits
    assert f"wrong order is {100 * chance:.1f} %" in said
    # A model that finds the missing answers looks worse than a weaker one.
    low, high = (
        theory.expectation("mrr", strength=strength, correlation=correlation, **world)
        for strength, correlation in ((0.75, 0.2), (0.7, 0.0))
    )
    said = page.evaluate(slide, {"correlation": 4})
    assert low < high
    assert f"shows {low:.3f}" in said
    assert "The order is wrong on average" in said
    assert "No model" in page.evaluate(slide, {"a": 18, "sparsity": 8, "correlation": 0})
    assert wrong == []

"""The documentation as a site: built without warnings, read in a browser at three widths, no network."""

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGES = (
    "index.html",
    "tasks/leaderboard.html",
    "audit.html",
    "api/auditing.html",
    "_notebooks/audit.html",
    "theory.html",
)

pytest.importorskip("sphinx", reason="Sphinx is not installed: pip install 'owkg[docs]'")
pytest.importorskip("myst_nb", reason="myst-nb is not installed: pip install 'owkg[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    line = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", out / "trees"]
    done = subprocess.run([*line, ROOT / "docs", out / "html"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_links_stay_in_the_site(site):
    """Every link to a page or a file of the site has one."""
    from html.parser import HTMLParser

    class Links(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found, self.ids = [], set()

        def handle_starttag(self, tag, attrs):
            given = dict(attrs)
            self.found += [given[name] for name in ("href", "src") if given.get(name)]
            self.ids.add(given.get("id"))

    read = {}
    for path in site.rglob("*.html"):
        read[path] = Links()
        read[path].feed(path.read_text(encoding="utf-8"))
    assert len(read) > 40
    broken = []
    for path, page in read.items():
        for link in page.found:
            if link.startswith(("http:", "https:", "data:", "mailto:", "#")) or "?" in link:
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve()
            if not target.exists() or (anchor and target in read and anchor not in read[target].ids):
                broken.append((path.relative_to(site).as_posix(), link))
    assert broken == []


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_in_a_browser(site):
    """No page is wider than the window, asks for anything elsewhere, or reports an error; search finds."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        with sync_api.sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page()
            wrong = []
            page.on("console", lambda one: wrong.append(one.text) if one.type == "error" else None)
            # Leaving a page aborts what it still asks for.
            page.on(
                "requestfailed", lambda one: wrong.append(one.url) if "ABORTED" not in one.failure else None
            )
            page.on(
                "request", lambda one: None if one.url.startswith((base, "data:")) else wrong.append(one.url)
            )
            for width in (360, 800, 1400):
                page.set_viewport_size({"width": width, "height": 800})
                for name in PAGES:
                    page.goto(base + name)
                    wide = page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width, (name, width, wide)
            page.goto(base + "search.html?q=breakdown+number")
            page.wait_for_selector("#search-results li", timeout=20_000)
            assert "audit" in page.inner_text("#search-results").lower()
            browser.close()
        server.shutdown()
    assert wrong == []

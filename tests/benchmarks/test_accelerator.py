"""`make accelerator`: every part is measured once, in one file; what failed is measured again."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.accelerator import restarted, with_earlier

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = runpy.run_path(str(ROOT / "benchmarks" / "accelerator_page.py"))


def accelerator(out, *arguments):
    """The script, in a process without the folder of data sets."""
    command = [sys.executable, "-W", "error", str(ROOT / "benchmarks" / "accelerator.py")]
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # no speed is compared
    return subprocess.run(
        [*command, "--out", str(out), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=out,
    )


def told(done):
    """What was said of each part."""
    lines = (re.fullmatch(r" *\d+ s  ([\w*\- ]+): (.*)", line) for line in done.stderr.splitlines())
    return {line[1]: line[2] for line in lines if line}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    out = tmp_path_factory.mktemp("measured")
    done = accelerator(out, "--quick")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, len(told(done)))
    return out, json.loads((out / "accelerator.json").read_text())


def test_every_part_is_measured_beside_its_limit(measured):
    out, content = measured
    parts = content["parts"]
    assert {name.split()[0] for name in parts} == {
        *("limits", "simulation", "evaluation", "training", "together", "rows", "sampled", "paper", "run")
    }
    assert set(content["planned"]) <= set(parts)
    assert content["versions"].keys() >= {"python", "jax", "jaxlib"}
    for name, found in parts.items():
        rows = found.get("rows", [found])
        numbers = {key: number for key, number in found.items() if isinstance(number, float)}
        # A model without matrices has no products. Of few candidates the sample may hold none that counts.
        zero_allowed = {"products_limit_s", "sampling_error"}
        assert all(number > 0 or (number == 0 and key in zero_allowed) for key, number in numbers.items()), (
            name
        )
        if name.split()[0] in ("simulation", "evaluation", "training", "rows", "sampled", "paper"):
            assert all(row["times_the_limit"] > 0 for row in rows)
    page = (out / "accelerator.md").read_text()
    assert "the numbers mean nothing" in page
    assert len(re.findall("^## ", page, re.MULTILINE)) == 8
    assert "GPU days" in page


def test_what_is_there_is_not_measured_again_and_what_failed_is(measured, tmp_path):
    _, content = measured
    lost, failed = "limits", "simulation"
    content = json.loads(json.dumps(content))
    content["parts"][failed] = {"failed": "JaxRuntimeError: RESOURCE_EXHAUSTED", "took_s": 1.0}
    del content["parts"][lost]
    (tmp_path / "accelerator.json").write_text(json.dumps(content))
    # No time: nothing is measured, and the page says so.
    done = accelerator(tmp_path, "--quick", "--minutes", "0")
    assert done.returncode == 1
    assert {name for name, words in told(done).items() if "no time" in words} == {lost, failed}
    page = (tmp_path / "accelerator.md").read_text()
    assert f"- {lost}: no time was left" in page
    assert f"- {failed}: JaxRuntimeError: RESOURCE_EXHAUSTED" in page
    done = accelerator(tmp_path, "--quick")
    assert done.returncode == 0
    again = {name for name, words in told(done).items() if words != "was measured before"}
    assert again == {lost, failed}
    now = json.loads((tmp_path / "accelerator.json").read_text())
    assert list(now["parts"]) == [lost, *content["parts"]]
    for name, found in content["parts"].items():
        assert (now["parts"][name] == found) == (name not in again)
    assert "Not measured" not in (tmp_path / "accelerator.md").read_text()


def test_a_part_that_does_not_end_ends_with_the_command(tmp_path):
    path = tmp_path / "accelerator.json"
    endless = f"""
import time
from pathlib import Path
from benchmarks.accelerator import Ledger, parts, described
ledger = Ledger(Path({str(path)!r}), described(parts.QUICK), 2 / 60, overwrite=False)
ledger.content["planned"] = ["quick", "slow", "next"]
ledger._seconds += 60  # there is time to begin
ledger.measure("quick", lambda found: {{"bytes_per_s": 1.0}})
ledger.measure("slow", lambda found: time.sleep(60), 0.0)
ledger.measure("next", lambda found: {{}}, 0.0)
"""
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", endless],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=50,
    )
    assert done.returncode == 1
    assert told(done)["slow"].endswith("failed: was still running when the time was over")
    content = json.loads(path.read_text())
    assert list(content["parts"]) == ["quick", "slow"]
    assert content["parts"]["quick"]["bytes_per_s"] == 1
    # The command that goes on takes the others first, but for what they are compared with.
    content["parts"] = {name: {"failed": "once", "took_s": 1.0} for name in ("limits", "simulation")}
    path.write_text(json.dumps(content))
    done = accelerator(tmp_path, "--quick", "--minutes", "0")
    assert done.returncode == 1
    first, *_, last = told(done)
    assert (first, last) == ("limits", "simulation")


def test_a_part_over_its_budget_is_given_up(tmp_path):
    path = tmp_path / "accelerator.json"
    slow = f"""
import time
from pathlib import Path
from benchmarks.accelerator import Ledger, parts, described
ledger = Ledger(Path({str(path)!r}), described(parts.QUICK), 2, overwrite=False, budget=0.2)
ledger.content["planned"] = ["slow", "next"]
ledger.measure("slow", lambda found: time.sleep(60), 0.0)
"""
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", slow], check=False, env=environment, timeout=50)
    assert done.returncode == 3
    assert json.loads(path.read_text())["parts"]["slow"]["failed"] == "took longer than its budget of 0 s"


def test_a_process_that_gave_up_is_followed_by_one_without_that_part():
    lost, begun = ["from earlier"], []

    def worker(skipped, minutes):
        assert 0 < minutes <= 9
        begun.append(skipped)
        lost.extend(["one", "two"][len(begun) - 1 : len(begun)])
        return 3 if len(begun) < 3 else 0

    assert restarted(worker, lambda: list(lost), 9) == 0
    assert begun == [[], ["one"], ["one", "two"]]


def test_files_of_others_are_refused(measured, tmp_path):
    _, content = measured
    path = tmp_path / "accelerator.json"
    for text, word in (
        (json.dumps(content | {"device": "another"}), "another device"),
        ("[]", "must be a file"),
    ):
        path.write_text(text)
        done = accelerator(tmp_path, "--quick", "--minutes", "0")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert word in done.stderr
        assert path.read_text() == text


def test_file_and_tables_are_published_together(measured, tmp_path):
    out, content = measured
    (tmp_path / "evidence").mkdir()
    speeds = tmp_path / "evidence" / "performance.md"
    speeds.write_text("# Performance\n\nof others\n")
    for _ in range(2):  # the second time in place of the first
        done = accelerator(out, "--publish", str(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
    record = tmp_path / "reproduction" / "accelerator.json"
    assert record.read_text() == (out / "accelerator.json").read_text()
    assert speeds.read_text() == PAGE["joined"]("# Performance\n\nof others\n", content)
    assert speeds.read_text().count("## Speed on an accelerator") == 1


def test_parts_that_were_not_reached_are_kept_with_date_and_device(measured):
    _, content = measured
    assert {found["measured"] for found in content["parts"].values()}
    earlier = json.loads(json.dumps(content)) | {"device": "an older one"}
    for found in earlier["parts"].values():
        found["measured"] = "2020-01-02"
    now = json.loads(json.dumps(content))
    reached = [name for name in now["parts"] if name.split()[0] in ("limits", "evaluation")]
    now["parts"] = {name: now["parts"][name] for name in reached}
    now["parts"]["sampled"] = {"failed": "was still running when the time was over", "took_s": 1.0}
    merged = with_earlier(now, earlier)
    assert list(merged["parts"]) == [name for name in content["parts"] if name in merged["parts"]]
    assert {name: merged["parts"][name] for name in reached} == {name: now["parts"][name] for name in reached}
    kept = {name: found for name, found in merged["parts"].items() if found.get("kept")}
    assert set(kept) == set(content["parts"]) - set(reached)
    text = PAGE["page"](merged)
    assert "- sampled: 2020-01-02, an older one" in text
    assert "| transe (kept) |" in text
    assert "## Not measured" not in text
    # What a later run does not reach either still says when and where it was measured.
    again = with_earlier({**now, "device": "the newest"}, merged)
    assert again["parts"]["sampled"]["device"] == "an older one"
    assert again["parts"]["sampled"]["measured"] == "2020-01-02"
    assert with_earlier(now | {"quick": False}, earlier)["parts"] == now["parts"]


@pytest.mark.skipif(not (DOCS / "reproduction" / "accelerator.json").is_file(), reason="not measured yet")
def test_the_page_ends_with_the_tables_of_the_file():
    content = json.loads((DOCS / "reproduction" / "accelerator.json").read_text(encoding="utf-8"))
    text = (DOCS / "evidence" / "performance.md").read_text(encoding="utf-8")
    assert text == PAGE["joined"](text, content)
    assert not content["quick"]

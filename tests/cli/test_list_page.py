"""The files and commands of the page on lists, runs and judgements."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from owkg.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "files" / "lists.md").read_text(encoding="utf-8")
FILES = re.findall(r"^`(\S+)`, [^\n]*(?:\n[^\n`]+)*\n\n```(?:text|json)\n(.*?)^```$", PAGE, re.M | re.S)
BLOCKS = re.findall(r"^```(console|python)\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "train.txt").write_text("a\tr\tb\nc\tr\td\n")
    (tmp_path / "graph" / "test.txt").write_text("a\tr\tc\n")
    np.savez("scores.npz", scores=np.eye(4)[:1], triples=[[0, 0, 2]], side="tail")
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    assert len(FILES) == 7
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, "lists.md", "exec"), {})  # noqa: S102
            continue
        for line in text.splitlines():
            code = main(shlex.split(line.removeprefix("$ owkg ")))
            assert code == 0, (line, capsys.readouterr().err)

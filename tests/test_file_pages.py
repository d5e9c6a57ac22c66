"""The page of rank tables: its files are as the page shows them, and its commands read them."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from owkg.cli.main import main

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "files" / "ranks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(text|console|python)\n(.*?)```", PAGE, re.DOTALL)


def _write(text):
    for part in re.split(r"^(?=file |array )", text, flags=re.MULTILINE)[1:]:
        first, rows = part.split("\n", 1)
        kind, name = first.split()
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        if kind == "array":
            np.save(path, np.loadtxt(io.StringIO(rows), dtype=int))
        else:
            path.write_text(rows)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_file_of_the_page_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = []
    for kind, text in BLOCKS:
        if kind == "text":
            _write(text)
        elif kind == "python":
            exec(text, {})  # noqa: S102 - the page's own lines
        for line in re.findall(r"^\$ owkg (.*)$", text, re.MULTILINE) if kind == "console" else ():
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
                code = main(line.split())
            assert code == 0, (line, out.getvalue())
            values += re.findall(r"^  mrr +([\d.]+)", out.getvalue(), re.MULTILINE)
    # By hand: the means of 1 over (optimistic + pessimistic) / 2.
    assert values == [f"{mrr:.4f}" for mrr in ((2 / 3 + 1 / 4) / 2, (2 / 3 + 1 / 4) / 2, 2.75 / 4, 0.75, 0.75,
                                               (2 / 3 + 0.4) / 2, 2.75 / 4, 0.625, 2.75 / 4)]  # fmt: skip

"""Files are whole or not there."""

import polars as pl
import pytest

from owkg.files import writable_folder, written_aside
from owkg.report.table import save_table


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "table.csv"
    with written_aside(path) as aside:
        aside.write_text("half")
        assert not path.exists()
        aside.write_text("whole")
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def interrupted():
        with written_aside(path) as aside:
            aside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_is_saved_and_named(tmp_path, capsys):
    path = save_table(pl.DataFrame({"a": [1]}), tmp_path / "t.csv")
    assert path.read_text() == "a\n1\n"
    assert capsys.readouterr().out == f"wrote {path}\n"


def test_a_folder_is_tried_and_left_empty(tmp_path):
    assert list(writable_folder(tmp_path / "out").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        writable_folder(tmp_path / "file" / "out")

"""Files are whole or not there."""

from pathlib import Path

import polars as pl
import pytest

from owkg.files import folder_aside, writable_folder, written_aside
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


def test_a_folder_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder"
    with folder_aside(path, mark="a") as aside:
        (aside / "a").touch()
        assert not path.exists()
    assert [f.name for f in path.iterdir()] == ["a"]
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupt_leaves_the_old_folder_and_nothing_else(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()

    def interrupted():
        with folder_aside(path, mark="old", overwrite=True) as aside:
            (aside / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [f.name for f in path.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    rename = Path.rename

    def failing(self, target):
        if self.name.endswith(".new"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="no"), folder_aside(path, mark="old", overwrite=True):
        pass
    assert [f.name for f in path.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_replaced_as_a_whole(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "old").touch()
    monkeypatch.chdir(tmp_path / "folder")
    with folder_aside(Path(), mark="old", overwrite=True) as aside:
        (aside / "new").touch()
    assert [f.name for f in (tmp_path / "folder").iterdir()] == ["new"]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_may_not_be_replaced_is_refused(tmp_path):
    file, folder, link = tmp_path / "file", tmp_path / "folder", tmp_path / "link"
    file.touch()
    folder.mkdir()
    link.symlink_to(folder)
    (folder / "mine").touch()
    for path, overwrite, reason in (
        (file, True, "must be a folder"),
        (link, True, "must be a folder"),
        (folder, False, "there already"),
        (folder, True, "holds no mark"),
    ):
        with pytest.raises(ValueError, match=reason), folder_aside(path, mark="mark", overwrite=overwrite):
            pass
    assert sorted(tmp_path.iterdir()) == [file, folder, link]
    assert (folder / "mine").is_file()


def test_a_table_is_saved_and_named(tmp_path, capsys):
    path = save_table(pl.DataFrame({"a": [1]}), tmp_path / "t.csv")
    assert path.read_text() == "a\n1\n"
    assert capsys.readouterr().out == f"wrote {path}\n"


def test_a_folder_is_tried_and_left_empty(tmp_path):
    assert list(writable_folder(tmp_path / "out").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        writable_folder(tmp_path / "file" / "out")

"""Folders say where they come from."""

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import owkg
from owkg.files.storage import __version__, checksums, made_folder, read_metadata, versions, write_metadata


def test_there_is_one_version():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == __version__ == owkg.__version__ == versions()["owkg"]


def test_every_file_has_its_checksum(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "inner" / "metadata.json").write_bytes(b"3")
    found = {name: hashlib.sha256(text).hexdigest() for name, text in (("a", b"1"), ("inner/b", b"2"))}
    found |= {"inner/metadata.json": hashlib.sha256(b"3").hexdigest()}
    assert checksums(tmp_path) == found
    write_metadata(tmp_path, {"name": "é", "sha256": found})
    assert read_metadata(tmp_path) == {"name": "é", "sha256": found}
    assert checksums(tmp_path) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds no metadata.json"),
        ("{", "must be JSON"),
        ("[]", "must hold checksums under sha256"),
        ("[" * 100_000 + "]" * 100_000, "must be JSON that is not nested so deep"),
        ('{"sha256": ' + "[" * 500 + "]" * 500 + "}", r"must hold checksums under sha256, got \[+\.\.\.\]+"),
        ('{"sha256": {"a": 1}}', "must hold checksums under sha256"),
    ],
)
def test_other_metadata_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_metadata(tmp_path)


# --- folders

OURS = '{"made_by": "owkg test"}'


def made(path, **options):
    return made_folder(path, made_by="owkg test", **options)


@pytest.fixture
def ours(tmp_path):
    """A folder that was made here."""
    path = tmp_path / "folder"
    path.mkdir()
    (path / "metadata.json").write_text(OURS)
    (path / "old").touch()
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder"
    with made(path) as aside:
        (aside / "a").touch()
        assert not path.exists()
    assert names(path) == ["a"]
    assert names(path.parent) == ["folder"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_interrupt_leaves_the_old_folder_and_nothing_else(ours, error):
    def interrupted():
        with made(ours, overwrite=True) as aside:
            (aside / "half").touch()
            raise error

    with pytest.raises(error):
        interrupted()
    assert names(ours) == ["metadata.json", "old"]
    assert names(ours.parent) == ["folder"]


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(ours, monkeypatch):
    rename = Path.rename

    def failing(self, target):
        if self.name.endswith(".new"):
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match=f"{ours}: cannot be written: no"), made(ours, overwrite=True):
        pass
    assert names(ours) == ["metadata.json", "old"]
    assert names(ours.parent) == ["folder"]


def test_a_folder_is_replaced_as_a_whole(ours, monkeypatch):
    monkeypatch.chdir(ours)
    with made(Path(), overwrite=True) as aside:
        (aside / "new").touch()
    assert names(ours) == ["new"]
    assert names(ours.parent) == ["folder"]


def test_an_empty_folder_is_replaced_when_asked(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is there already; `overwrite`"), made(tmp_path / "empty"):
        pass
    with made(tmp_path / "empty", overwrite=True) as aside:
        (aside / "new").touch()
    assert names(tmp_path / "empty") == ["new"]


@pytest.mark.parametrize("metadata", [None, "{", "[]", "{}", '{"made_by": "another"}', "[" * 100_000])
def test_what_was_made_elsewhere_is_not_replaced(tmp_path, metadata):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "thesis.tex").touch()
    if metadata is not None:
        (path / "metadata.json").write_text(metadata)
    with pytest.raises(ValueError, match="was not made by owkg test"), made(path, overwrite=True):
        pass
    assert "thesis.tex" in names(path)


def test_files_and_links_are_not_replaced(tmp_path, ours):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(ours)
    for name in ("file", "link"):
        with pytest.raises(ValueError, match="must be a folder"), made(tmp_path / name, overwrite=True):
            pass
    with pytest.raises(OSError, match="inner: cannot be made"), made(tmp_path / "file" / "inner"):
        pass
    assert names(ours) == ["metadata.json", "old"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_in_the_meantime_is_left_alone(tmp_path, overwrite):
    path = tmp_path / "folder"

    def slow():
        with made(path, overwrite=overwrite):
            path.mkdir()
            (path / "thesis.tex").touch()

    with pytest.raises(ValueError, match=r"is not replaced|is there already"):
        slow()
    assert names(path) == ["thesis.tex"]
    assert names(tmp_path) == ["folder"]


def test_a_folder_that_is_read_is_not_replaced(ours):
    message = "holds .*old, which is read"
    with pytest.raises(ValueError, match=message), made(ours, inputs=[ours / "old"], overwrite=True):
        pass
    assert names(ours) == ["metadata.json", "old"]


def test_a_name_that_is_taken_is_left_alone(tmp_path, monkeypatch):
    digits = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr("owkg.files.begun.secrets.token_hex", lambda _: next(digits))
    with made(tmp_path / "folder") as other:
        (other / "half").touch()
        with made(tmp_path / "folder") as aside:
            assert aside.name.startswith(".folder.bbbbbbbb")
        assert names(other) == ["half"]
        (tmp_path / "folder").rmdir()


KILLED = """
import os, signal, sys
from pathlib import Path
from owkg.files.storage import made_folder

with made_folder(Path(sys.argv[1]), made_by="owkg test", overwrite=True) as aside:
    (aside / "half").touch()
    print("begun", flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.read()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_had_begun_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a [folder]"
    command = [sys.executable, "-c", KILLED, str(path)]
    subprocess.run([*command, "die"], capture_output=True, check=False)
    (left,) = names(tmp_path)
    assert left.startswith(".a [folder].")
    other = tmp_path / left.replace("folder", "other")
    other.mkdir()
    with subprocess.Popen([*command, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as alive:
        assert alive.stdout.readline() == b"begun\n"
        (at_work,) = set(names(tmp_path)) - {other.name}
        assert at_work != left
        # Who is at work is left alone, and so are folders of other names.
        with made(path) as aside:
            (aside / "whole").touch()
        assert set(names(tmp_path)) == {"a [folder]", at_work, other.name}
        alive.kill()
    (path / "metadata.json").write_text(OURS)
    with made(path, overwrite=True):
        pass
    assert set(names(tmp_path)) == {"a [folder]", other.name}


def test_an_old_folder_that_was_replaced_is_removed_and_one_that_was_not_stays(ours):
    parent = ours.parent
    for name in (".folder.00000000.old", ".folder.11111111.old", ".folder.11111111.new"):
        (parent / name).mkdir()
    with made(ours, overwrite=True):
        pass
    assert names(parent) == [".folder.11111111.new", ".folder.11111111.old", "folder"]
    (parent / ".folder.22222222.old").mkdir()
    ours.rmdir()
    with made(ours):
        assert ".folder.22222222.old" in names(parent)
    assert ".folder.22222222.old" in names(parent)


def test_a_full_disk_names_the_folder(tmp_path):
    def full():
        with made(tmp_path / "folder"):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="folder: cannot be written: No space left on device"):
        full()
    assert names(tmp_path) == []


def test_what_cannot_be_read_is_not_said_to_be_unwritable(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"), made(tmp_path / "folder"):
        (tmp_path / "nowhere").read_bytes()

"""Folders say where they come from."""

import hashlib
import tomllib
from pathlib import Path

import pytest

import owkg
from owkg.provenance import __version__, checksums, read_metadata, versions, write_metadata


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
        ('{"sha256": {"a": 1}}', "must hold checksums under sha256"),
    ],
)
def test_other_metadata_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_metadata(tmp_path)

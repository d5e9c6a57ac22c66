"""Files as people, programs and disks damage them: a result that is one, or one error that names the file."""

import gzip
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.cases import FUZZ
from tests.fuzz.changes import BINARY, TEXT, changed
from tests.fuzz.readers import READERS

_LONGEST = 5000


def _written(folder: Path, files: dict[str, str | bytes]) -> None:
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def _read(name: str, folder: Path):
    """What the reader gives, None where it ends in an error that names a file or an argument."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return READERS[name].read(folder)
        except (ValueError, OSError) as error:
            said = str(error)
            assert str(folder) in said or said.startswith("`"), said
            assert "Traceback" not in said
            assert "\n" not in said or len(said) > _LONGEST, said
            return None


@pytest.mark.parametrize("name", READERS)
@FUZZ
@given(data=st.data())
def test_a_damaged_file_is_read_or_named(name, place, data):
    files = dict(READERS[name].files)
    which = data.draw(st.sampled_from(sorted(files)), "file")
    content = files[which]
    kind = TEXT if isinstance(content, str) else BINARY
    files[which] = changed(
        content.encode() if isinstance(content, str) else content, data.draw(kind, "changes")
    )
    _written(place, files)
    if (found := _read(name, place)) is not None:
        READERS[name].check(found)


_HARMLESS = {
    "line ends": lambda text: text.replace("\n", "\r\n"),
    "no last line end": lambda text: text.removesuffix("\n"),
    "byte order mark": lambda text: "\ufeff" + text,
    "packed": lambda text: gzip.compress(text.encode(), mtime=0),
}


@pytest.mark.parametrize("change", _HARMLESS)
@pytest.mark.parametrize("name", [name for name, one in READERS.items() if one.same])
def test_what_programs_write_otherwise_is_the_same_or_an_error(name, change, place):
    reader = READERS[name]
    _written(place, reader.files)
    wanted = reader.same(_read(name, place))
    for which in reader.files:
        _written(place, reader.files | {which: _HARMLESS[change](reader.files[which])})
        found = _read(name, place)
        assert found is None or reader.same(found) == wanted, which

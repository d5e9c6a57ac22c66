"""Files are whole or not there."""

import gzip
import os
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from owkg.files.lines import read_lines
from owkg.files.parquet import read_parquet
from owkg.files.storage import (
    MAX_UNPACKED,
    opened,
    require_bounded,
    text_source,
    writable_folder,
    written_aside,
)
from owkg.judge import read_judgements, read_runs
from owkg.models.embeddings_files import read_npz
from owkg.ranks import RankDataset, ranks_from_matrix, read_ranks
from owkg.sampling import read_facts
from simulations.script import save_table


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


# --- packed files


RANKS = "head,relation,tail,side,optimistic,pessimistic,candidates,filtered\n" + "".join(
    f"e{i * 7919 % 101},r{i % 3},e{i},tail,{i % 9 + 1},{i % 9 + 1},101,true\n" for i in range(300)
)
FACTS = "".join(f"e{i * 7919 % 101}\tr{i % 3}\te{i}\n" for i in range(300))
RUN = "".join(f"e{i % 50}|r|? Q0 e{i} 1 {i} system\n" for i in range(300))
QRELS = "".join(f"e{i % 50}|r|? 0 e{i} 1\n" for i in range(300))
PACKED = {
    "lines.txt.gz": (read_lines, FACTS),
    "ranks.csv.gz": (read_ranks, RANKS),
    "ranks.tsv.gz": (read_ranks, RANKS.replace(",", "\t")),
    "ranks.csv": (read_ranks, RANKS),  # packed all the same
    "facts.tsv.gz": (read_facts, FACTS),
    "system.run.gz": (lambda path: read_runs([path]), RUN),
    "some.qrels.gz": (read_judgements, QRELS),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_damaged_byte_of_a_packed_file_is_an_error_of_one_line(tmp_path, name):
    read, text = PACKED[name]
    path = tmp_path / name
    whole = gzip.compress(text.encode(), mtime=0)
    path.write_bytes(whole)
    expected = read(path)
    # From the tenth byte on: before it stand the marks of gzip, a time and a system, which say nothing.
    for place in range(10, len(whole), 23):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=f"{name}: must be a whole gzip file") as caught:
            read(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    assert str(read(path)) == str(expected)


@pytest.mark.parametrize("name", PACKED)
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, name, monkeypatch):
    read, text = PACKED[name]
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv(MAX_UNPACKED, "1000")
    with pytest.raises(ValueError, match=rf"{name}: .* more than 1,000; {MAX_UNPACKED}=BYTES"):
        read(path)
    monkeypatch.setenv(MAX_UNPACKED, "1000000")
    assert len(read(path)) > 0


def test_without_a_word_128_mebibytes_are_allowed_or_a_hundred_times_the_file(tmp_path, monkeypatch):
    monkeypatch.delenv(MAX_UNPACKED, raising=False)
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(2**27 + 1), compresslevel=1))
    with pytest.raises(ValueError, match=r"zeros\.gz: .* bytes unpack to more than 134,217,728;"):
        read_lines(path)
    require_bounded(path, 1000, 2**27)
    require_bounded(path, 2**21, 100 * 2**21)
    with pytest.raises(ValueError, match="more than 209,715,200"):
        require_bounded(path, 2**21, 100 * 2**21 + 1)


def test_unpacking_stops_at_the_bound(tmp_path, monkeypatch):
    monkeypatch.setenv(MAX_UNPACKED, str(2**21))
    packed = gzip.compress(bytes(2**30), compresslevel=1)
    with opened(tmp_path / "zeros", data=packed) as file:
        with pytest.raises(ValueError, match="unpack to more than"):
            file.read()
        assert file.raw._packed.tell() < len(packed) / 4


@pytest.mark.parametrize("value", ["", "-1", "1e9", "much"])
def test_a_bound_is_a_number_of_bytes(tmp_path, monkeypatch, value):
    monkeypatch.setenv(MAX_UNPACKED, value)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a"))
    with pytest.raises(ValueError, match=f"{MAX_UNPACKED} must be a number of bytes, got '{value}'"):
        read_lines(tmp_path / "a.gz")


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(gzip.compress(b"a,b\n1,2\n", mtime=0), mtime=0),
        zlib.compress(b"a,b\n1,2\n"),
        zlib.compress(b"a,b\n1,2\n", 1),
        b"\x28\xb5\x2f\xfd" + bytes(9),
    ],
)
def test_polars_is_given_nothing_to_unpack(tmp_path, packed):
    (tmp_path / "a.csv").write_bytes(packed)
    with pytest.raises(ValueError, match=r"a\.csv: must be text, or text packed once by gzip"):
        text_source(tmp_path / "a.csv")


def _npz(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def test_arrays_that_unpack_to_much_are_refused(tmp_path):
    zeros = np.zeros(2**25, np.float32)
    for read in (ranks_from_matrix, read_npz):
        path = _npz(tmp_path / "zeros.npz", scores=zeros, entity=zeros)
        with pytest.raises(ValueError, match=r"^[^:]*zeros\.npz: .* bytes unpack to more than"):
            read(path)
    # As many bytes that say what they are: no bound.
    with zipfile.ZipFile(tmp_path / "stored.npz", "w") as archive:
        archive.write(_npz(tmp_path / "a.npz", a=np.zeros(3)), "a.txt")
    with pytest.raises(ValueError, match="no array"):
        ranks_from_matrix(tmp_path / "stored.npz")


def _zigzag(number: int) -> bytes:
    """A whole number as Thrift's compact protocol writes it."""
    number, found = 2 * number, []
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.parametrize("fewer", [309, 274])  # 274 values fill the first page of each column
@pytest.mark.parametrize("as_folder", [False, True])
def test_parquet_files_whose_counts_of_rows_disagree_are_damaged(tmp_path, fewer, as_folder):
    """Each count of rows, groups, columns alone, and all of them together: no row vanishes in silence."""
    count, random = 1236, np.random.default_rng(0)
    ids = {name: random.integers(10**9, size=count) for name in ("head", "relation", "tail")}
    ranks = {name: random.integers(1, 10**9, size=count) for name in ("optimistic", "candidates")}
    table = pl.DataFrame(ids | ranks).with_columns(side=pl.lit("tail"), pessimistic="optimistic")
    table = table.with_columns(candidates=pl.col("candidates") + pl.col("optimistic"))
    path = tmp_path / "ranks.parquet"
    table.write_parquet(path, data_page_size=2 * count, statistics=False)
    whole = path.read_bytes()
    assert read_parquet(path).equals(table)
    begins = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    marked = re.escape(b"\x16" + _zigzag(count))
    places = [found.start() + 1 for found in re.finditer(marked, whole) if found.start() >= begins]
    assert len(places) == 2 + len(table.columns)
    for chosen in (*((place,) for place in places), places, places[:-2]):
        broken = bytearray(whole)
        for place in chosen:
            broken[place : place + 2] = _zigzag(fewer)
        path.write_bytes(broken)
        with pytest.raises(
            ValueError, match=r"ranks\.parquet: must be an undamaged Parquet file: .* (rows|values)"
        ):
            RankDataset.of(tmp_path) if as_folder else read_ranks(path)


def test_lists_and_structs_are_no_damage(tmp_path):
    table = pl.DataFrame(
        {"a": [[1, 2], [], None, [3]], "b": [{"x": 1}, {"x": 2}, None, {"x": 3}], "c": [1, 2, 3, None]}
    )
    for rows in (4, 0):
        table[:rows].write_parquet(tmp_path / "a.parquet", row_group_size=3)
        assert read_parquet(tmp_path / "a.parquet").equals(table[:rows])


def test_a_damaged_parquet_file_is_an_error_of_one_line(tmp_path, capfd):
    table = pl.read_csv(RANKS.encode())
    table.write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "ranks.parquet"
    said = []
    for place in range(3, len(whole), 31):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            read_parquet(path)
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all(text.startswith(f"{path}: ") and "\n" not in text for text in said)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("panics", [False, True])
def test_a_panic_of_rust_is_an_error_and_what_else_is_said_is_heard(tmp_path, capfd, monkeypatch, panics):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    read = pl.read_parquet

    def speaking(*arguments, **options):
        os.write(2, b"said\n")
        if panics:
            raise pl.exceptions.PanicException("called `unwrap`")
        return read(*arguments, **options)

    monkeypatch.setattr(pl, "read_parquet", speaking)
    if panics:
        with pytest.raises(ValueError, match=r"a\.parquet: must be an undamaged Parquet file: called"):
            read_parquet(path)
    else:
        assert read_parquet(path).rows() == [(1,)]
    assert capfd.readouterr().err == ("" if panics else "said\n")


DYING = """
import ctypes, os, sys
from pathlib import Path
from owkg.files import parquet

with parquet._damage_told(Path("a\\x1b.parquet")):
    os.write(2, sys.argv[1].encode())
    (ctypes.PyDLL if sys.argv[2] == "held" else ctypes.CDLL)(None).abort()
"""


@pytest.mark.skipif(os.name != "posix", reason="aborts in another way")
@pytest.mark.parametrize("lock", ["held", "free"])
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            "memory allocation of 99 bytes failed\n",
            2,
            "owkg: error: a\\x1b.parquet: this takes more memory than there is: "
            "memory allocation of 99 bytes failed\n",
        ),
        ("fatal: something else\n", -6, "fatal: something else\n"),
    ],
)
def test_what_a_process_says_before_it_ends_is_heard(words, code, said, lock):
    done = subprocess.run(
        [sys.executable, "-c", DYING, words, lock], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory in another way")
def test_a_file_that_does_not_fit_in_memory_says_so(tmp_path):
    """Whether Python, polars or its allocator finds out."""
    pl.select(a=pl.int_range(10**7).hash()).write_parquet(tmp_path / "much.parquet")
    code = """
import resource, sys
from pathlib import Path
import polars as pl
from owkg.cli.errors import guarded
from owkg.files.parquet import read_parquet

pl.select(pl.int_range(10).hash()).lazy().collect(engine="streaming")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, used + 2**25))
sys.exit(guarded("owkg", lambda: read_parquet(Path(sys.argv[1]))))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "much.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("owkg: error: ")
    assert "memory" in done.stderr


def test_a_small_parquet_file_of_many_rows_is_refused(tmp_path):
    path = tmp_path / "ones.parquet"
    pl.select(a=pl.repeat(1, 2 * 10**7, dtype=pl.Int8)).write_parquet(path)
    assert path.stat().st_size < 10**5
    with pytest.raises(ValueError, match=r"ones\.parquet: .* bytes unpack to more than"):
        read_ranks(path)


def _part(number: int, rows: int = 3000) -> pl.DataFrame:
    heads = [f"{number}-{i}" for i in range(rows)]
    ranks = {"optimistic": 1, "pessimistic": 2, "candidates": 50}
    return pl.DataFrame({"head": heads}).with_columns(
        relation=pl.lit("r"),
        tail=pl.lit("t"),
        side=pl.lit("tail"),
        **{k: pl.lit(v) for k, v in ranks.items()},
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: _part(1).rename({"optimistic": "x"}).write_parquet(path),
        lambda path: _part(2).write_parquet(path),
        lambda path: _part(1, 100).write_parquet(path),
        lambda path: path.write_bytes(b"\0" * path.stat().st_size),
        Path.unlink,
    ],
)
@pytest.mark.parametrize("read", ["1", "2"])
def test_a_part_that_changes_while_a_folder_is_read_is_named(tmp_path, change, read):
    """Whether its turn is to come, or has begun."""
    for number in range(3):
        _part(number).write_parquet(tmp_path / f"{number}.parquet")
    batches = RankDataset.of(tmp_path).batches()
    for _ in range(int(read)):
        next(batches)
    path = tmp_path / "1.parquet"
    change(path)
    os.utime(path, ns=(1, 1)) if path.exists() else None
    with pytest.raises((ValueError, FileNotFoundError), match=r"1\.parquet"):
        list(batches)

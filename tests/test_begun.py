"""Files and folders that are begun under another name: whole or not there, whoever else is at work."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from owkg.cli.inputs import check_writable
from owkg.cli.output import written_together
from owkg.files import begun
from owkg.files.storage import made_folder, writable_folder, written_aside

HOLDING = """
import sys
from pathlib import Path
from owkg.files.begun import temporary_folder
from owkg.files.storage import written_aside

out = Path(sys.argv[1])
with temporary_folder("owkg-tried-"), written_aside(out) as aside:
    aside.write_text("half")
    print("begun", flush=True)
    sys.stdin.read()
"""
WRITING = """
import sys
from pathlib import Path
from owkg.files.storage import written_aside

for text in sys.argv[2:]:
    with written_aside(Path(sys.argv[1])) as aside, aside.open("w") as file:
        for _ in range(2000):
            file.write(text)
"""


@pytest.fixture(autouse=True)
def _unswept():
    begun._swept.cache_clear()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def python(code, *arguments, before=(), **options):
    return subprocess.Popen([*before, sys.executable, "-c", code, *map(str, arguments)], text=True, **options)


def holding(out, before=()):
    process = python(HOLDING, out, before=before, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "begun\n"
    return process


def own_processes():
    """What starts a program with process numbers of its own, as a container does."""
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    for tried in (command, ["unshare", "--pid", "--fork"]):
        if shutil.which("unshare") and not subprocess.run([*tried, "true"], capture_output=True).returncode:
            return tried
    return pytest.skip("no namespaces of processes here")


@pytest.mark.parametrize("contained", [False, True])
def test_processes_that_write_one_file_never_mix(tmp_path, contained):
    """Two containers have processes of one number."""
    before = own_processes() if contained else []
    out = tmp_path / "out.txt"
    texts = ["ab" * 40, "cd" * 40]
    running = [python(WRITING, out, *[text] * 15, before=before) for text in texts]
    seen = set()
    while any(process.poll() is None for process in running):
        if out.exists():
            seen.add(out.read_text())
    assert [process.returncode for process in running] == [0, 0]
    assert seen | {out.read_text()} <= {text * 2000 for text in texts}
    assert names(tmp_path) == ["out.txt"]


def test_threads_that_write_one_file_never_mix(tmp_path):
    out, failed = tmp_path / "out.txt", []

    def write(letter):
        try:
            for _ in range(20):
                with written_aside(out) as aside, aside.open("w") as file:
                    for _ in range(100):
                        file.write(letter * 100)
                writable_folder(tmp_path)
        except BaseException as error:  # told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=write, args=[letter]) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(set(out.read_text())) == 1
    assert names(tmp_path) == ["out.txt"]


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path, temporary):
    out = tmp_path / "out.txt"
    killed, alive = holding(out), holding(out)
    killed.kill()
    killed.communicate()
    assert len(names(tmp_path)) == 3
    assert len(names(temporary)) == 2
    with written_aside(tmp_path / "other.txt") as aside, begun.temporary_folder("owkg-tried-"):
        aside.write_text("whole")
        assert len(names(temporary)) == 2
    assert len(names(tmp_path)) == 3  # a living one's, other.txt, and the temporary folder
    assert len(names(temporary)) == 1
    alive.communicate("")
    assert (names(tmp_path), names(temporary)) == (["other.txt", "out.txt", "temporary"], [])
    assert out.read_text() == "half"


def test_what_a_container_holds_is_not_removed(tmp_path, temporary):
    alive = holding(tmp_path / "out.txt", before=own_processes())
    with written_aside(tmp_path / "other.txt") as aside, begun.temporary_folder("owkg-tried-"):
        aside.write_text("whole")
    assert len(names(temporary)) == 1
    alive.communicate("")
    assert names(tmp_path) == ["other.txt", "out.txt", "temporary"]


def _left(folder, name, *, days=0.0):
    path = folder / name
    path.touch()
    then = time.time() - days * 86400
    os.utime(path, (then, then))
    return path


@pytest.mark.parametrize("locks", [True, False])
def test_what_another_kernel_began_stays_until_it_is_old(tmp_path, monkeypatch, locks):
    """Its lock may not be seen here; neither are there locks on every disk."""
    here, there = begun._kernel(), "0" * 8
    if not locks:
        monkeypatch.setattr("owkg.files.begun._lock", lambda _: None)
    fresh = _left(tmp_path, f".owkg-aaaaaaaa{there}.part.csv")
    _left(tmp_path, f".owkg-bbbbbbbb{there}.part.csv", days=3)
    own = _left(tmp_path, f".owkg-cccccccc{here}.part")
    with written_aside(tmp_path / "out.csv"):
        pass
    assert names(tmp_path) == sorted([fresh.name, "out.csv"] + [own.name] * (not locks))


def test_sweeping_follows_no_link_and_leaves_other_names_and_users(tmp_path, temporary, monkeypatch):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (temporary / "owkg-tried-aaaaaaaa").symlink_to(precious)
    (temporary / "owkg-tried-mine").mkdir()
    (temporary / "owkg-tried-cccccccc").mkdir()
    (temporary / "owkg-tried-cccccccc" / "link").symlink_to(precious)
    os.mkfifo(temporary / "owkg-tried-bbbbbbbb")
    with begun.temporary_folder("owkg-tried-") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert names(precious) == ["file"]
    assert names(temporary) == ["owkg-tried-aaaaaaaa", "owkg-tried-bbbbbbbb", "owkg-tried-mine"]
    (temporary / "owkg-tried-dddddddd").mkdir()
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with begun.temporary_folder("owkg-tried-"):
        pass
    assert "owkg-tried-dddddddd" in names(temporary)


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.write_text("precious")
    digits = iter(["aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr("owkg.files.begun.secrets.token_hex", lambda _: next(digits))
    (tmp_path / f".owkg-aaaaaaaa{begun._kernel()}.part.txt").symlink_to(target)
    out = tmp_path / "out.txt"
    out.symlink_to(target)  # neither is a link in the place of the output
    with written_aside(out) as aside:
        aside.write_text("new")
    assert (target.read_text(), out.read_text(), out.is_symlink()) == ("precious", "new", False)


def test_a_new_file_has_the_permissions_that_the_user_asks_for(tmp_path):
    before = os.umask(0o027)
    try:
        with written_aside(tmp_path / "out"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["a" * 251 + ".csv", "é" * 127, "a." + "b" * 253])
def test_names_may_be_as_long_as_the_file_system_has_them(tmp_path, name):
    with written_aside(tmp_path / name) as aside:
        aside.write_text("whole")
    assert (tmp_path / name).read_text() == "whole"
    (tmp_path / name).unlink()
    with made_folder(tmp_path / name, made_by="test"):
        (left,) = names(tmp_path)
    # A killed process leaves such a folder; another name's is left alone.
    (tmp_path / left).mkdir()
    with made_folder(tmp_path / ("x" + name[1:] if name[0] == "a" else "x"), made_by="test"):
        pass
    assert left in names(tmp_path)
    with made_folder(tmp_path / name, made_by="test", overwrite=True):
        pass
    assert left not in names(tmp_path)
    with pytest.raises(OSError, match="cannot be written: File name too long"):
        written_aside(tmp_path / ("a" * 256)).__enter__()


@pytest.mark.parametrize("inner", ["", "x.csv"])
def test_a_loop_of_links_is_refused(tmp_path, inner):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    out = tmp_path / "a" / inner
    for tried in (lambda: check_writable([out], []), lambda: written_aside(out).__enter__()):
        with pytest.raises(OSError, match="cannot be written: it is a loop of links"):
            tried()
    assert names(tmp_path) == ["a", "b"]


def test_a_pipe_and_a_device_take_what_is_written_and_stay(tmp_path):
    pipe, got = tmp_path / "pipe.csv", []
    os.mkfifo(pipe)
    check_writable([pipe], [])
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    with written_aside(pipe) as aside:
        assert aside.parent != tmp_path
        aside.write_text("whole")
    reader.join()
    assert got == ["whole"]
    assert pipe.is_fifo()
    for device in (Path("/dev/null"), Path("/dev/full")):
        if not device.is_char_device():
            continue
        check_writable([device], [])
        writer = written_aside(device)
        writer.__enter__().write_text("whole")
        if device.name == "full":
            with pytest.raises(OSError, match="/dev/full: cannot be written: No space left on device"):
                writer.__exit__(None, None, None)
        else:
            writer.__exit__(None, None, None)
        assert device.is_char_device()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no such device")
@pytest.mark.parametrize("to_file", [False, True])
def test_standard_output_may_be_the_output(tmp_path, to_file):
    """Also where it is a file, the link that names it is not replaced."""
    was = os.readlink("/dev/stdout")  # noqa: PTH115
    with (tmp_path / "out").open("w") as file:
        out = file if to_file else subprocess.PIPE
        said = python(WRITING, "/dev/stdout", "a", stdout=out).communicate()[0]
    assert ((tmp_path / "out").read_text() if to_file else said) == "a" * 2000
    assert os.readlink("/dev/stdout") == was  # noqa: PTH115


FULL = """
import resource, signal, sys
from pathlib import Path
import polars as pl
from owkg.cli.errors import guarded
from owkg.cli.output import write_frame
from owkg.files.storage import made_folder

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
frame = pl.select(a=pl.int_range(10**5).hash())
def call():
    if sys.argv[2] == "folder":
        with made_folder(Path(sys.argv[1]), made_by="test") as aside:
            frame.write_csv(aside / "a.csv")
    write_frame(frame, Path(sys.argv[1]))
sys.exit(guarded("owkg", call))
"""


@pytest.mark.parametrize("kind", ["out.csv", "out.parquet", "folder"])
def test_a_disk_that_takes_no_more_names_the_output_and_leaves_nothing(tmp_path, kind):
    said = python(FULL, tmp_path / kind, kind, stderr=subprocess.PIPE)
    _, words = said.communicate()
    assert re.fullmatch(
        rf"owkg: error: {re.escape(str(tmp_path / kind))}: cannot be written: File too large.*\n", words
    )
    assert said.returncode == 2
    assert names(tmp_path) == []


def test_files_that_belong_together_appear_together(tmp_path, capsys):
    (tmp_path / f".owkg-{'a' * 16}.new").mkdir()
    os.utime(tmp_path / f".owkg-{'a' * 16}.new", (0, 0))
    for text in ("old", "new"):
        with written_together(tmp_path) as aside:
            (aside / "a.csv").write_text(text)
            (aside / "b.csv").write_text(text)
        assert names(tmp_path)[-2:] == ["a.csv", "b.csv"]
        assert (tmp_path / "a.csv").read_text() == text
    assert capsys.readouterr().err.count("wrote ") == 4


def test_a_folder_is_tried_without_touching_what_is_in_it(tmp_path):
    (tmp_path / "tried").write_text("mine")
    assert writable_folder(tmp_path) == tmp_path
    assert names(tmp_path) == ["tried"]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    """As in /proc, where no name is free."""
    with pytest.raises(FileExistsError), begun.new_folder(lambda: tmp_path):
        pass

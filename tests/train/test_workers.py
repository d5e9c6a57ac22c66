"""Tasks on workers of Dask: results in order, workers that die, and what is refused."""

import operator
import os
import platform
import warnings
from pathlib import Path

import pytest

from owkg.errors import ArgumentError
from owkg.train import workers
from owkg.train.workers import Where, run_tasks, where

TWO = Where(workers=2)
# What workers import: not a test module, whose imports are those of the tests.
MODULE = """
import os, signal
from pathlib import Path
from owkg.train.workers import told

def dies_once(place, number):
    if not Path(place).exists():
        Path(place).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    told(1, 2, "half")
    return number**2

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

def listening(root):
    # Local addresses, hexadecimal, on which a process and its descendants listen.
    parents = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(one.parent.name)] = int(one.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    tree = {root}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    held = set()
    for one in tree:
        for file in Path(f"/proc/{one}/fd").glob("*"):
            try:
                held.add(os.readlink(file))
            except OSError:
                continue
    tables = [Path("/proc/net", kind).read_text().splitlines() for kind in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table]
    return [line[1].partition(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in held]

def gpus():
    from distributed import get_worker
    return get_worker().state.available_resources.get("GPU")
"""


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """A module of functions that workers can import."""
    (tmp_path / "tasks_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import tasks_of_a_test  # pyright: ignore[reportMissingImports]

    return tasks_of_a_test


def test_a_killed_worker_is_replaced_and_progress_is_told(tasks, tmp_path):
    heard, ended = [], []
    places = [(str(tmp_path / f"begun{i % 2}"), i) for i in range(6)]
    found = run_tasks(
        tasks.dies_once,
        places,
        TWO,
        tmp_path,
        on_progress=lambda *at: heard.append(at),
        on_done=lambda *at: ended.append(at),
    )
    assert found == [i**2 for i in range(6)]
    assert sorted(ended) == [(i, i**2) for i in range(6)]
    assert {(i, 1, 2, "half") for i in range(6)} >= set(heard) != set()
    assert not list(tmp_path.glob(".*"))


def test_a_task_that_kills_its_workers_is_given_up(tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_DEATHS", 0)
    with pytest.raises(ValueError, match="1 workers died, one after another, while running task 1 of 1"):
        run_tasks(tasks.dies, [()], TWO, tmp_path)


def test_a_scheduler_by_its_address_and_gpus(tasks, tmp_path):
    """Of workers with the resource GPU each task takes one; errors of a task are those of the caller."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, resources={"GPU": 1}, dashboard_address=None) as local:
        place = Where(scheduler=local.scheduler_address)
        assert run_tasks(tasks.gpus, [(), ()], place, tmp_path) == [0, 0]
        with pytest.raises(ZeroDivisionError):
            run_tasks(operator.truediv, [(1, 0)], place, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(platform, "python_version", lambda: "2.7.18")
            with pytest.raises(
                ValueError, match=r"worker tcp://.*: must have Python 2\.7\.18 as here, got 3\."
            ):
                run_tasks(operator.add, [(1, 1)], place, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "_checksum", lambda package: "0" * 12)
            with pytest.raises(
                ValueError, match=r"must have source code of owkg 0{12} as here, got [0-9a-f]{12}"
            ):
                run_tasks(operator.add, [(1, 1)], place, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "touch", lambda _: None)
            with pytest.raises(ValueError, match=f"does not see {tmp_path}; all must share a file system"):
                run_tasks(operator.add, [(1, 1)], place, tmp_path)


def test_a_scheduler_that_does_not_answer_or_has_no_workers(tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(workers, "TIMEOUT_S", 1)
    for address in ("tcp://127.0.0.1:9", "nowhere"):
        with pytest.raises(
            ValueError, match=f"`scheduler` must be the address of a Dask scheduler, got {address}"
        ):
            run_tasks(operator.add, [(1, 1)], Where(scheduler=address), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with LocalCluster(n_workers=0, dashboard_address=None) as local:
        place = Where(scheduler=local.scheduler_address)
        with pytest.raises(ValueError, match="`scheduler` must have workers"):
            run_tasks(operator.add, [(1, 1)], place, tmp_path)


LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="lists no sockets")
@pytest.mark.parametrize("encrypted", [True, False])
def test_nothing_listens_beyond_this_machine(tasks, tmp_path, monkeypatch, encrypted, recwarn):
    if not encrypted:
        found = workers.find_spec
        without = lambda name: None if name == "cryptography" else found(name)  # noqa: E731
        monkeypatch.setattr(workers, "find_spec", without)
    (addresses,) = run_tasks(tasks.listening, [(os.getpid(),)], Where(), tmp_path)
    assert len(addresses) >= 4
    assert set(addresses) <= LOOPBACK
    told = [str(one.message) for one in recwarn if "can reach the workers" in str(one.message)]
    assert len(told) == (not encrypted)


def test_the_workers_of_a_run_ask_for_its_keys(tmp_path, monkeypatch):
    """Others who reach their ports have none; a scheduler of tls:// is reached by those that Dask is told."""
    import distributed
    from dask import config

    monkeypatch.setattr(workers, "TIMEOUT_S", 1)
    with workers._client(distributed, Where()) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        with pytest.raises(ArgumentError, match="scheduler"):
            run_tasks(operator.add, [(1, 1)], Where(address.replace("tls:", "tcp:")), tmp_path)
        keys = client.security
        names = {"ca-file": keys.tls_ca_file}
        names |= {"client.key": keys.tls_client_key, "client.cert": keys.tls_client_cert}
        with config.set({f"distributed.comm.tls.{name}": key for name, key in names.items()}):
            assert run_tasks(operator.add, [(1, 1)], Where(address), tmp_path) == [2]


def test_a_scheduler_of_a_network_is_warned_of_unless_it_is_encrypted(tmp_path):
    import distributed

    warn = workers._warn_of_network
    for address in ("tcp://10.0.0.7:8786", "tcp://[2001:db8::1]:8786", "node7:8786"):
        with pytest.warns(UserWarning, match="has neither encryption nor authentication"):
            warn(distributed, address)
    for address in ("tls://10.0.0.7:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn(distributed, address)
    with pytest.raises(ArgumentError, match="needs the certificates that Dask's configuration names"):
        run_tasks(operator.add, [(1, 1)], Where(scheduler="tls://127.0.0.1:9"), tmp_path)


def test_where():
    assert where(None, None) is None
    assert where(None, 1) is None
    assert where(None, 3) == Where(None, 3)
    assert where("tcp://a:1", None) == Where("tcp://a:1", 1)
    with pytest.raises(ValueError, match="`workers` has no effect with --scheduler"):
        where("tcp://a:1", 2)
    with pytest.raises(ValueError, match="`workers` must be at least 1"):
        where(None, 0)

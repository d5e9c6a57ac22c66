"""Tasks on workers of Dask: results in order, workers that die, and what is refused."""

import operator
import platform
from pathlib import Path

import pytest

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
    with pytest.raises(
        ValueError, match="1 workers died, one after the other, while they were at task 1 of 1"
    ):
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
            with pytest.raises(ValueError, match=r"worker tcp://.*: has Python 3\..*, and here is 2\.7\.18"):
                run_tasks(operator.add, [(1, 1)], place, tmp_path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "_checksum", lambda package: "0" * 12)
            with pytest.raises(ValueError, match=r"has source code of owkg [0-9a-f]{12}, and here is 0{12}"):
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


def test_where():
    assert where(None, None) is None
    assert where(None, 1) is None
    assert where(None, 3) == Where(None, 3)
    assert where("tcp://a:1", None) == Where("tcp://a:1", 1)
    with pytest.raises(ValueError, match="`workers` has no effect with --scheduler"):
        where("tcp://a:1", 2)
    with pytest.raises(ValueError, match="`workers` must be at least 1"):
        where(None, 0)

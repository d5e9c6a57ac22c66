"""What long work says on standard error, on a terminal and elsewhere."""

import time
from threading import Event

import pytest
from rich.progress import Progress

import owkg.terminal.progress as module
from owkg import kg
from owkg.terminal.progress import progress


@pytest.fixture
def quick(monkeypatch):
    """Lines and bars come at once."""
    monkeypatch.setattr(module, "_EVERY_S", 0.01)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.0)


def heard(capsys, words):
    """What has been said once all `words` were; fails if they are not within two minutes."""
    said, until = "", time.monotonic() + 120
    while not all(word in said for word in words):
        assert time.monotonic() < until, f"heard only {said!r}"
        time.sleep(0.01)
        said += capsys.readouterr().err
    return said


def test_short_work_is_silent(capsys):
    with progress("training", "steps") as update:
        update(1, 10, "loss 2")
    assert capsys.readouterr() == ("", "")


def test_lines_say_how_far_it_is(capsys, quick):
    with progress("training", "steps") as update:
        assert "owkg: training: 0 s\n" in heard(capsys, ["\n"])  # also before anything was told
        update(1000, 5000, "loss 3")
        heard(capsys, ["owkg: training: 1,000 of 5,000 steps, loss 3, 0 s\n"])
        update(3000, 5000, "loss 2")
        said = heard(capsys, ["3,000 of 5,000 steps, loss 2, 0 s, 0 s left\n"])
        update(10, 4000, "another model")  # whose speed is not that of the one before
        heard(capsys, ["10 of 4,000 steps, another model, 0 s\n"])
    assert "\x1b" not in said


def test_the_time_that_is_left(monkeypatch):
    """At the speed since the first that was told: a resumed training begins anywhere."""
    monkeypatch.setattr(module.time, "monotonic", lambda: 1000.0)
    told = [module._Told(910.0, 400, 1000, ""), module._Told(990.0, 600, 1000, "loss 2")]
    line = module._line("training", "steps", 880.0, told)
    assert line == "owkg: training: 600 of 1,000 steps, loss 2, 2 min, 3 min left"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (119.2, "119 s"), (150, "2 min"), (7000, "117 min"), (7500, "2 h 5 min")],
)
def test_durations(seconds, words):
    assert module._duration(seconds) == words


def test_a_terminal_gets_a_bar(capsys, quick, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with progress("training", "steps") as update:
        heard(capsys, ["training"])  # before anything was told
        update(1000, 5000, "loss 3")
        heard(capsys, ["1,000/5,000 steps", "loss 3"])


def test_a_bar_begins_again_with_the_next_count(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    again = []
    monkeypatch.setattr(Progress, "reset", lambda self, task: again.append(self.tasks[task].completed))
    with progress("training", "steps") as update:
        for done in (10, 20, 20, 5, 30):
            update(done, 30)
    assert again == [20]


def test_an_error_ends_the_lines(capsys, quick):
    with pytest.raises(ValueError, match="no"), progress("training"):
        raise ValueError("no")
    capsys.readouterr()
    assert not Event().wait(0.05)
    assert capsys.readouterr().err == ""


def test_counting_a_graph_says_that_it_does(call, capsys, quick, monkeypatch, tmp_path):
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    statistics, said = kg.graph_statistics, []

    def slow(graph):
        said.append(heard(capsys, ["owkg: counting: 0 s\n"]))
        return statistics(graph)

    monkeypatch.setattr(kg, "graph_statistics", slow)
    assert call("kg", "info", tmp_path)[0] == 0
    assert said

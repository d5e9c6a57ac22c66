"""Learning curves: of one run with its best step, of several runs, and of runs that were not validated."""

import numpy as np
import polars as pl
import pytest

from owkg import plots
from owkg.kg import KnowledgeGraph, write_labelled
from owkg.train import load_run, run_path, train_seeds, training

PATH = pl.DataFrame(
    {
        "step": [10, 20, 30, 40],
        "epoch": [1.0, 2.0, 3.0, 4.0],
        "loss": [2.0, 1.5, 1.2, 1.1],
        "valid_mrr": [None, 0.2, None, 0.4],
        "valid_hits@10": [None, 0.3, None, 0.5],
    }
)


def test_loss_and_validation_by_epoch_with_the_best_step():
    fig = plots.learning_curves(PATH, best=20)
    loss, valid = fig.axes
    assert loss.lines[0].get_xydata().tolist() == [[1, 2], [2, 1.5], [3, 1.2], [4, 1.1]]
    assert valid.lines[0].get_xydata().tolist() == [[2, 0.2], [4, 0.4]]
    assert valid.lines[1].get_xydata().tolist() == [[2, 0.2]]
    assert "best step 20: 0.200" in [text.get_text() for text in valid.get_legend().get_texts()]
    assert (loss.get_ylabel(), valid.get_ylabel()) == ("training loss", "validation mrr")
    assert loss.get_ylim()[0] == valid.get_ylim()[0] == 0


def test_the_metric_is_the_one_asked_for_or_the_first_there_is():
    assert plots.learning_curves(PATH, metric="hits@10").axes[1].get_ylabel() == "validation hits@10"
    assert plots.learning_curves(PATH, metric="mr").axes[1].get_ylabel() == "validation mrr"


def test_several_runs_are_named_and_one_without_validation_has_a_loss_only():
    bare = PATH.drop("valid_mrr", "valid_hits@10").with_columns(loss=pl.col("loss") - 2)
    fig = plots.learning_curves({"seed 0": PATH, "seed 1": bare})
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["seed 0", "seed 1"]
    assert len(fig.axes[1].lines) == 1
    (loss,) = plots.learning_curves(bare, best=20).axes
    assert loss.get_ylim()[0] < 0


def test_the_mean_of_seeds_is_over_the_epochs_that_all_have():
    short = PATH[:3].with_columns(loss=pl.col("loss") + 1)
    fig = plots.learning_curves({"seed 0": PATH, "seed 1": short}, mean=True)
    means = [panel.lines[-1] for panel in fig.axes]
    assert means[0].get_xydata().tolist() == [[1, 2.5], [2, 2.0], [3, pytest.approx(1.7)]]
    assert means[1].get_xydata().tolist() == [[2, 0.2]]
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["seed 0", "seed 1", "mean"]
    assert means[0].get_color() not in [line.get_color() for line in fig.axes[0].lines[:-1]]


def test_runs_are_read_from_their_folders(tmp_path):
    graph = KnowledgeGraph(
        tuple("abcdef"), ("r",), {"train": np.array([[i, 0, (i + 1) % 6] for i in range(6)], np.int32)}
    )
    write_labelled(graph, tmp_path / "graph")
    settings = {"dim": 2, "epochs": 3, "valid_every": 0}
    train_seeds(tmp_path / "graph", training("complex", **settings), [4, 1], tmp_path / "runs")
    for paths, labels in (
        (tmp_path / "runs", ["seed 1", "seed 4", "mean"]),
        (str(tmp_path / "runs" / "seed-4"), ["_child0"]),
        ({"x": tmp_path / "runs" / "seed-4", "y": run_path(tmp_path / "runs" / "seed-1")}, ["x", "y"]),
    ):
        (panel,) = plots.learning_curves(paths).axes
        assert [line.get_label() for line in panel.lines] == labels
    loss = load_run(tmp_path / "runs" / "seed-1").path["loss"].to_list()
    assert panel.lines[1].get_ydata().tolist() == loss
    with pytest.raises(ValueError, match="one run for each name, got several for 'x'"):
        plots.learning_curves({"x": tmp_path / "runs"})
    with pytest.raises(ValueError, match=r"graph: is not the folder of a run"):
        plots.learning_curves(tmp_path / "graph")


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ({}, "at least one run"),
        (PATH[:0], "at least one row"),
        ({"a": PATH.drop("loss")}, "must have the column loss of 'a'"),
    ],
)
def test_paths_that_cannot_be_drawn_are_refused(paths, message):
    with pytest.raises(ValueError, match=message):
        plots.learning_curves(paths)

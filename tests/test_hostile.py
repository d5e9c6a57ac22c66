"""Text made to be slow or large is read in linear time and little memory, or refused.

Where the work grew with the square of the length, an input of this size would take days.
"""

import io
import pickle
import re
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from owkg.cli.ranks.sampled_negatives import _values
from owkg.errors import renamed
from owkg.ir.names import measure
from owkg.kg import read_graph
from owkg.kg.read import _NUMBERS
from owkg.metrics import metric
from owkg.models import read_embeddings
from owkg.ranks import ranks_from_matrix, read_ranks

LONG = 10**6


@pytest.mark.parametrize("text", ["\\'", "'", "`a", "'a", "a'", '\\"', "\\\\'", "(`x` "])
def test_errors_with_long_values(text):
    assert len(renamed(text * (LONG // 10), lambda name: f"--{name}")) >= LONG // 10
    assert renamed("`a` must not be '`b`' or \"`c`\", it\\'s `d`", str.upper) == (
        "A must not be '`b`' or \"`c`\", it\\'s D"
    )


@pytest.mark.parametrize("digits", ["1", "1.", "@1", "1,", "-", "(", "_1", "p="])
def test_names_of_metrics_with_long_numbers(digits):
    for name in (digits * 20_000 + "x", f"strat-{digits * 20_000}x", f"p-mrr@{digits * 20_000}x"):
        for reader in (metric, measure):
            with suppress(ValueError):
                assert reader(name) is None


def test_other_patterns_of_long_numbers():
    with pytest.raises(ValueError, match="must be METRIC=VALUE"):
        _values(f"mrr={'1' * LONG}x")
    assert _values("mrr=0.98,mr=12")[1] == {"mrr": 0.005, "mr": 0.5}
    for text in ("1" * LONG, " " * LONG, "1 " * LONG, "1 1" + " " * LONG):
        assert not re.fullmatch(_NUMBERS, text + "x")


BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BOMB, 1),
        ("dataset:\n  name: &a x\n  other: *a\n", 2),
        ("dataset:\n  name: !!python/object/apply:os.system ['true']\n", 2),
        ("dataset:\n  name: " + "[" * LONG + "\n", 2),
        ("dataset: " + "{a: " * 10_000 + "\n", 1),
    ],
)
def test_a_description_of_a_graph_is_plain(tmp_path, text, line):
    """No alias, so no bomb; no tag, so no object; no depth."""
    (tmp_path / "dataset.yaml").write_text(text)
    (tmp_path / "train.del").write_text("0\t0\t1\n")
    with pytest.raises(ValueError, match=rf"dataset\.yaml, line {line}: must be"):
        read_graph(tmp_path)


class Touches:
    """What a pickle may do when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["scores", "../../outside", "/outside"])
@pytest.mark.parametrize("kind", ["array", "pickle", "text"])
def test_an_archive_writes_and_runs_nothing(tmp_path, name, kind):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    path, ran = folder / "evil.npz", tmp_path / "ran"
    content = io.BytesIO()
    if kind == "pickle":
        np.save(content, np.array([Touches(ran)], object), allow_pickle=True)
    elif kind == "array":
        np.save(content, np.zeros((2, 2)))
    else:
        content.write(b"x")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", content.getvalue())
    for reader in (read_embeddings, ranks_from_matrix):
        with pytest.raises(ValueError, match="evil"):
            reader(path)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["a", "b", "evil.npz"]
    (folder / "model.pt").write_bytes(pickle.dumps(Touches(ran)))
    with pytest.raises(ValueError, match=r"model\.pt"):
        read_embeddings(folder / "model.pt")
    assert not ran.exists()


def test_a_line_may_be_long(tmp_path):
    row = ",".join(["x" * 10**7, "r", "t", "tail", "1", "1", "5"])
    path = tmp_path / "ranks.csv"
    path.write_text(f"head,relation,tail,side,optimistic,pessimistic,candidates\n{row}\n")
    assert len(read_ranks(path).frame["head"][0]) == 10**7
    path.write_text(path.read_text() + "y" * 10**7 + "\n")
    with pytest.raises(ValueError, match=r"ranks\.csv") as caught:
        read_ranks(path)
    assert len(str(caught.value)) < 10**7

"""A small open world in which nothing is missing."""

import numpy as np
import pytest

from simulations.open_world.world import read_world


@pytest.fixture(scope="module")
def world(worlds_folder):
    return read_world(worlds_folder / "d1.0")


@pytest.fixture(scope="module")
def worlds_folder(tmp_path_factory):
    rng = np.random.default_rng(1)
    facts = np.unique(rng.integers(0, (9, 2, 9), (140, 3)), axis=0)
    rng.shuffle(facts)
    parts = {"train": facts[:50], "test_full": facts[50:], "test_sparse": facts[50:]}
    folder = tmp_path_factory.mktemp("worlds") / "d1.0"
    folder.mkdir()
    for name, triples in parts.items():
        (folder / f"{name}.txt").write_text("".join(f"e{h}\tr{r}\te{t}\n" for h, r, t in triples))
    return folder.parent


@pytest.fixture
def call(request, capsys):
    """Runs a command of the module's MAIN; gives (exit code, standard output, standard error)."""

    def run_it(*arguments):
        code = request.module.MAIN([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run_it

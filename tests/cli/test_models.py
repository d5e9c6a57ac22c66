"""`owkg models` as its users meet it."""

import json

from owkg.cli.main import main
from owkg.models import MODELS, model
from owkg.train import training


def test_the_table_has_every_model(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    for name, kind in MODELS.items():
        assert any(line.split()[:1] == [name] and kind.source in line for line in out.splitlines())
    assert "[h; r]" in out


def test_json_builds_the_models(capsys):
    assert main(["models", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert [row["name"] for row in rows] == list(MODELS)
    for row in rows:
        assert model(row["name"], **row["options"]) is model(row["name"])
        assert training(row["name"], **row["training"]) == training(row["name"])

"""Replays of acceptance at a precision, as the script prints and draws them."""

import polars as pl

from simulations.accepted_predictions import main


def test_a_first_look_has_a_table_of_few_lines_and_a_figure(tmp_path, capsys):
    main(quick=True, out=tmp_path)
    assert 20 < len(capsys.readouterr().out.splitlines()) <= 40
    sets = pl.read_csv(tmp_path / "accepted_sets.csv")
    assert sets["violated"].max() < 0.15
    # More judgements let more in.
    shares = sets.filter(world="independent", precision=0.5).sort("drawn")["share"].to_list()
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert {path.suffix for path in tmp_path.glob("accepted_predictions.*")} == {".png", ".svg", ".pdf"}

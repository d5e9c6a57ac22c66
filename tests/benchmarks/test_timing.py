"""What another interpreter measures is its last line; if it fails, the option that named it is blamed."""

import sys
from pathlib import Path

import pytest

from benchmarks.timing import measured_elsewhere


def test_the_last_line_as_json(tmp_path):
    script = tmp_path / "measure.py"
    script.write_text("import json, sys; print('warm'); print(json.dumps({'given': sys.argv[1:]}))")
    assert measured_elsewhere("torch", Path(sys.executable), script, 3, "x") == {"given": ["3", "x"]}


def test_a_script_that_fails(tmp_path):
    script = tmp_path / "measure.py"
    script.write_text("raise SystemExit('no torch here')")
    with pytest.raises(ValueError, match=r"`torch` must be an interpreter that can run .*: no torch here"):
        measured_elsewhere("torch", Path(sys.executable), script)

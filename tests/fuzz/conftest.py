"""A folder for all cases of a module."""

import pytest


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder that every case empties before it writes."""
    return tmp_path_factory.mktemp("fuzz")

"""`python -m owkg` is `owkg`."""

from owkg.cli.main import run

run()

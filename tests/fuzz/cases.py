"""How many cases: some in each run of the tests, as many as OWKG_FUZZ says in `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

NUMBER = int(os.environ.get("OWKG_FUZZ", "0"))
# Without a number the same cases each time; with one, those of --hypothesis-seed.
FUZZ = settings(
    deadline=None,
    derandomize=not NUMBER,
    database=None,
    max_examples=NUMBER or 25,
    suppress_health_check=list(HealthCheck),
)

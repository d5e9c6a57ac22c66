"""Figure 5a of Yang et al. (2022): facts missing at random, beside facts that a model chose.

    python simulations/figure5_correlation.py --preset quick --out out

Also `owkg reproduce figure5-correlation`.
"""

from owkg.cli.reproduce.open_world import COMMANDS
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(COMMANDS["figure5-correlation"])

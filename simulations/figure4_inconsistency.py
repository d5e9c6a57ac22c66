"""Figure 4 of Yang et al. (2022): the sparse test set takes the weaker of two models for the stronger.

    python simulations/figure4_inconsistency.py --preset quick --out out

Also `owkg reproduce figure4`.
"""

from owkg.cli.reproduce.open_world import COMMANDS
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(COMMANDS["figure4"])

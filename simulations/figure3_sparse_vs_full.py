"""Figures 3, 4 and 5 of Yang et al. (2022), and their claims in numbers, from one set of runs.

    python simulations/figure3_sparse_vs_full.py --preset quick --out out

Also `owkg reproduce open-world`.
"""

from owkg.cli.reproduce.open_world import COMMANDS
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(COMMANDS["open-world"])

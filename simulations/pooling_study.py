"""The study of Zhou et al. (2022) where the truth is known: pools of trained models in a closed world.

    python simulations/pooling_study.py --preset quick --out out

Also `owkg reproduce pooling`.
"""

from owkg.cli.reproduce.pooling import pooling
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(pooling)

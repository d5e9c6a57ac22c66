"""Figure 1 of Yang et al. (2022): MRR under missing facts against the true strength.

    python simulations/figure1_expectation.py --quick --out out

Also `owkg reproduce figure1`.
"""

from owkg.cli.reproduce.figure1 import figure1
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(figure1)

"""Figure 2 of Yang et al. (2022): MRR when missing facts correlate with the model's predictions.

    python simulations/figure2_correlation.py --quick --out out

Also `owkg reproduce figure2`.
"""

from owkg.cli.reproduce.figure2 import figure2
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(figure2)

"""Figure 5b of Yang et al. (2022): sparse against full by other metrics than MRR.

    python simulations/figure5_metrics.py --preset quick --out out

Also `owkg reproduce figure5-metrics`.
"""

from owkg.cli.reproduce.open_world import COMMANDS
from owkg.cli.script import run_script

if __name__ == "__main__":
    run_script(COMMANDS["figure5-metrics"])

"""The commands of `python -m simulations.few_judgements`."""

from simulations.few_judgements import coverage
from simulations.script import command_line, run_package

main = command_line(
    "simulations.few_judgements",
    {"coverage": coverage.coverage},
    {"coverage": "coverage --quick --out out\ncoverage --workers 2 --out out"},
)

if __name__ == "__main__":
    run_package(main)

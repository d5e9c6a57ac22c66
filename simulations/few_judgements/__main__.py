"""The commands of `python -m simulations.few_judgements`."""

from simulations.few_judgements import annotators, coverage, fb_test_s, widths
from simulations.script import command_line, run_package

main = command_line(
    "simulations.few_judgements",
    {
        "coverage": coverage.coverage,
        "equal-width": widths.equal_width,
        "plans": widths.plans,
        "annotators": annotators.annotators,
        "fb-test-s": fb_test_s.fb_test_s,
    },
    {
        "coverage": "coverage --quick --out out\ncoverage --workers 2 --out out",
        "equal-width": "equal-width --table out/few_judgements.csv --out out",
        "plans": "plans --table out/few_judgements.csv --out out",
        "annotators": "annotators --quick --out out",
        "fb-test-s": "fb-test-s --data data --out out",
    },
)

if __name__ == "__main__":
    run_package(main)

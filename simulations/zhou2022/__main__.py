"""The commands of `python -m simulations.zhou2022`."""

from simulations.script import command_line, run_package
from simulations.zhou2022 import closed_world, judged_benchmark, study

main = command_line(
    "simulations.zhou2022",
    {"pooling": study.pooling, "closed-world": closed_world.closed_world, "published": judged_benchmark.main},
    {
        "pooling": "pooling --preset quick --out out\n"
        "pooling --preset cpu --density 0.75 --depth 5 --out out",
        "closed-world": "closed-world --seeds 1 --max-steps 50 --out out\nclosed-world --seeds 3 --out out",
        "published": "published --data data --out out",
    },
)

if __name__ == "__main__":
    run_package(main)

"""The entry of the `owkg` command, also as `python -m owkg`."""

import sys


def main() -> None:
    """Runs the command; also an interrupt while it is being imported is one line."""
    try:
        from owkg.cli.main import run
    except KeyboardInterrupt:
        sys.stderr.write("owkg: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

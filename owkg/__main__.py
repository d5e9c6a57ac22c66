"""The entry of the `owkg` command, also as `python -m owkg`."""

from owkg.terminal.process import begun


def main() -> None:
    """Runs the command; an interrupt while it is being imported is one line too."""
    begun("owkg")
    from owkg.cli.main import run

    run()


if __name__ == "__main__":
    main()

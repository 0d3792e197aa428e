"""The door of the command line: `dovetail` and `python -m dovetail`."""

import sys


def main() -> None:
    """Run the command line; an interruption while it is being loaded is one line, too."""
    try:
        from dovetail.cli.main import main as run
    except KeyboardInterrupt:
        print("error: interrupted; nothing was written.", file=sys.stderr)
        sys.exit(1)
    run()


if __name__ == "__main__":
    main()

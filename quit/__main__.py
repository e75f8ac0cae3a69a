"""``python -m quit``: the command line."""

from quit.cli import run

if __name__ == "__main__":
    run()

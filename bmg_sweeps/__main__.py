"""The command line: `python -m bmg_sweeps COMMAND`, run from the checkout."""

import sys

try:
    from bmg_sweeps.cli.app import main
except ModuleNotFoundError as lacking:
    if (lacking.name or "").startswith("bmg_sweeps"):
        raise
    print(
        f"error: {lacking.name} is not installed for {sys.executable}; expected the "
        f"environment that make creates: source .venv/bin/activate",
        file=sys.stderr,
    )
    sys.exit(2)

if __name__ == "__main__":
    sys.exit(main())

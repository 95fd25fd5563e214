"""The command line: `python -m bmg_sweeps COMMAND`, run from the checkout."""

import sys

from bmg_sweeps.cli.app import main

if __name__ == "__main__":
    sys.exit(main())

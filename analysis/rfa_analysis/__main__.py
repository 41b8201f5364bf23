"""python3 -m rfa_analysis: the same as the command rfa-analysis."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())

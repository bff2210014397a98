"""`make bench-prediction`: held-out prediction beside other packages, one thread. See README.md beside this file."""

import sys

from run import limit_threads

if __name__ == "__main__":
    limit_threads()
    from prediction.command import main  # NumPy is loaded from here on

    sys.exit(main())

"""`make bench`: start-up, first fit against second, and a table of hardthresh next to other packages.

One thread everywhere, CPU time beside wall time. `--smoke` checks in seconds that it runs and that the figures which
do not depend on the machine did not get worse. See README.md beside this file.
"""

import os
import sys

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def limit_threads() -> None:
    """Allow one thread. Libraries read this when they are loaded, so a process that came with others starts again."""
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        return
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    limit_threads()
    from command import main  # NumPy is loaded from here on

    sys.exit(main())

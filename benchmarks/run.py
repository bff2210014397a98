"""`make bench`: hardthresh next to other packages, one thread everywhere. See README.md beside this file."""

import os
import sys

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def limit_threads() -> None:
    """Allow one thread. Libraries read this when they are loaded, so a process that came with others starts again."""
    if all(os.environ.get(name) == "1" for name in THREAD_VARIABLES):
        return
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    limit_threads()
    if sys.argv[1:] == ["--serve"]:
        from runner.serve import serve as main
    else:
        from runner.command import main  # NumPy is loaded from here on

    sys.exit(main())

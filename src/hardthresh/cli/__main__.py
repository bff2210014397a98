"""``python -m hardthresh.cli``, the same as ``hardthresh``."""

from . import main

if __name__ == "__main__":
    main()

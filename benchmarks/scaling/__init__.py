"""The tasks of `benchmarks/scale.py`, a file for each, and what their rows share."""

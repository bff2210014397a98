"""Our own way to run the benchmark: interleaved rounds, CPU time, data passes, other interpreters, contention."""

"""What datasets, solvers and the objective of this benchmark share. Needs NumPy and SciPy only, in any version."""

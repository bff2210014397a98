"""Estimators that choose features by fits of another estimator, and say how far to trust the choice."""

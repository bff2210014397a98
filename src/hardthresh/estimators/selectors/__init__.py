"""Estimators that choose features by fits of another estimator, with error control."""

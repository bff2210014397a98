"""Gaussian graphical models with at most a given number of edges."""

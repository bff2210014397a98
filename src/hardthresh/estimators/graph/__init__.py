"""Gaussian graphical models with a budget of edges."""

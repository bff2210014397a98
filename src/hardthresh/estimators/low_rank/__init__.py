"""Matrices of low rank: reduced-rank regression and matrix completion."""

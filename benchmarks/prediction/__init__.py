"""Held-out prediction of our estimators at their defaults, beside other packages; see README.md in the folder above."""

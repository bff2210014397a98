"""Held-out prediction of our estimators at their defaults, beside other packages. See README.md in the parent folder."""

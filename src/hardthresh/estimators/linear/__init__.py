"""Linear models with at most k features or groups."""

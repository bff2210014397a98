"""Searches by refits with the code of NumPy, where the kernel was built, too."""

import pytest

from hardthresh.solvers.working_set import local_scores, refit_search, refits


def use_numpy(patch: pytest.MonkeyPatch) -> None:
    """Keep the kernel out of refits, their scores and the search by them, until a patch is undone."""
    for module in (refits, local_scores, refit_search):
        patch.setattr(module, "kernel", lambda: None)

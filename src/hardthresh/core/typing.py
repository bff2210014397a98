"""Names for what the contracts pass around."""

from __future__ import annotations

from typing import Any, TypeAlias

Array: TypeAlias = Any
"""An array of any library that follows the Python array API standard: NumPy, torch, CuPy, array_api_strict."""

Support: TypeAlias = Any
"""Where a point may be non-zero, as its constraint says it: an index array, a set of groups, a pair of bases.
Opaque to solvers: only the constraint that made a support may look inside."""

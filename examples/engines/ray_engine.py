"""An engine on Ray: four methods, with the same bits as the engines of the package. Needs ``pip install ray``.

ray.init()
model = SparseLinearRegression(n_nonzero_coefs=15).fit(RayEngine(from_parquet("folder", target="y")))
"""

from copy import copy

import ray

from hardthresh.designs.engine import both_of_leaf, keep_leaf, leaves, not_empty, picked, stacked, sum_leaf
from hardthresh.designs.tree import FAN, add

sum_there = ray.remote(sum_leaf)
keep_there = ray.remote(keep_leaf)
both_there = ray.remote(num_returns=2)(both_of_leaf)
pick_there = ray.remote(picked)
add_there = ray.remote(lambda *parts: add(parts))


class KeptOnRay(list):
    """References to the rows that tasks have left; Ray frees what nobody refers to."""

    def release(self):
        self.clear()

    __enter__, __exit__ = (lambda self: self), (lambda self, *raised: self.release())


class RayEngine:
    def __init__(self, blocks, leaf_size=8):
        self.blocks, self.leaf_size, self.readings = blocks, leaf_size, 0

    def sweep(self, task, *args, on=None, columns=None):
        parts = [sum_there.remote(leaf, task, args) for leaf in (self._leaves(columns) if on is None else on)]
        return self._added(parts)

    def keep(self, task, *args, columns=None):
        return KeptOnRay(keep_there.remote(leaf, task, args) for leaf in self._leaves(columns))

    def both(self, task, *args, columns=None):
        parts, kept = zip(*(both_there.remote(leaf, task, args) for leaf in self._leaves(columns)), strict=True)
        return self._added([*parts]), KeptOnRay(kept)

    def rows(self, picks):
        return stacked(ray.get([pick_there.remote(self.blocks, pick) for pick in picks]))

    def on_blocks(self, blocks):
        other = copy(self)
        other.blocks = blocks
        return other

    def _leaves(self, columns):
        self.readings += 1
        return leaves(self.blocks if columns is None else self.blocks.select(columns), self.leaf_size)

    def _added(self, parts):
        while len(parts) > 1:
            parts = [add_there.remote(*parts[start : start + FAN]) for start in range(0, len(parts), FAN)]
        return not_empty(ray.get(parts[0]) if parts else None)

"""How often a run makes the host wait for a device: counted with torch on the CPU, where nothing waits.

On a GPU the host waits where the value of an array on the device decides what comes next: where a number is converted,
where the shape of a result depends on the data, and where an array is copied to the host. Torch calls the same
operations for tensors on the CPU, and these are counted.
"""

from __future__ import annotations

import traceback
from collections import Counter
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = {"_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "equal", "is_nonzero"}
"""Operations that return a number, or an array whose shape depends on the data."""


class HostWaits(TorchDispatchMode):
    """A context that counts what the host would wait for.

    Attributes
    ----------
    total : int
        How often it would have waited.
    operations : int
        The number of operations of torch.
    where : Counter
        How often, by the line of the package that asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total, self.operations, self.where = 0, 0, Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        name = func.__name__.partition(".")[0]
        by_mask = name in ("index", "index_put_") and any(x is not None and x.dtype == torch.bool for x in args[1])
        if name in WAITING or by_mask:
            self._note()
        return func(*args, **(kwargs or {}))

    def __enter__(self):
        to_host = torch.Tensor.cpu

        def counted(tensor, *args, **kwargs):
            self._note()
            return to_host(tensor, *args, **kwargs)

        self._patch = patch.object(torch.Tensor, "cpu", counted)
        self._patch.start()
        return super().__enter__()

    def __exit__(self, *raised):
        self._patch.stop()
        return super().__exit__(*raised)

    def _note(self) -> None:
        self.total += 1
        asked = [
            frame
            for frame in traceback.extract_stack(limit=25)
            if "hardthresh/" in frame.filename and not frame.filename.endswith(("core/lazy.py", "core/choosing.py"))
        ]
        if asked:
            self.where[f"{asked[-1].filename.rpartition('hardthresh/')[2]}:{asked[-1].lineno}"] += 1

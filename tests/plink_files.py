"""Small PLINK 1 files of random genotypes."""

from pathlib import Path

import numpy as np


def filled(copies):
    """Missing genotypes as the mean of their column; of a column without genotypes as 0."""
    seen = np.where(np.isnan(copies), 0.0, copies).sum(axis=0) / np.maximum((~np.isnan(copies)).sum(axis=0), 1)
    return np.where(np.isnan(copies), seen, copies)


def write(path, copies, rubbish=0, names=False):
    """Write copies, with NaN for missing ones; `rubbish` are the bits after the last sample of a column."""
    n, p = copies.shape
    codes = np.where(np.isnan(copies), 1, np.array([3, 2, 0])[np.nan_to_num(copies).astype(int)]).astype(np.uint8).T
    codes = np.pad(codes, ((0, 0), (0, -n % 4)), constant_values=rubbish)
    packed = codes[:, 0::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4 | codes[:, 3::4] << 6
    path = Path(path)
    path.write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    if names:
        path.with_suffix(".fam").write_text("".join(f"F{i} I{i} 0 0 1 -9\n" for i in range(n)))
        path.with_suffix(".bim").write_text("".join(f"1 rs{j} 0 {j} A G\n" for j in range(p)))
    return path


def draw(n, p, seed=0, missing=0.05):
    rng = np.random.default_rng(seed)
    copies = rng.binomial(2, rng.uniform(0.05, 0.5, p), (n, p)).astype(float)
    copies[rng.random((n, p)) < missing] = np.nan
    return copies

"""Images of low rank, and pictures that fit into a cell's file."""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from hardthresh.datasets.files import DatasetError, local_folders

OBSERVED = 0.35  # the share of pixels that are seen


@lru_cache(maxsize=1)  # cells of one image stand side by side
def low_rank_image(name: str, height: int, width: int, rank: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a grey image (0 to 255) cut to a rank, and which of its pixels are observed; the seed draws these."""
    from PIL import Image

    if name == "china.jpg":
        from sklearn.datasets import load_sample_image

        picture = Image.fromarray(load_sample_image(name))
    else:
        picture = Image.open(_find(name))
    picture = picture.convert("L")
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    U, s, Vt = np.linalg.svd(np.asarray(picture, dtype=float), full_matrices=False)
    observed = np.random.default_rng(seed + 1).random((height, width)) < OBSERVED
    return (U[:, :rank] * s[:rank]) @ Vt[:rank], observed


def _find(name: str) -> Any:
    """Return where a picture of the Kodak set is."""
    folders = local_folders()
    for folder in folders:
        if (folder / "images" / "kodak" / name).is_file():
            return folder / "images" / "kodak" / name
    looked = " and ".join(str(folder) for folder in folders) or "no folder, because HARDTHRESH_DATA is not set"
    raise DatasetError(
        f"{name}, of the Kodak test images, is not on this machine (looked in: {looked}); it belongs into the folder "
        "images/kodak of the one that HARDTHRESH_DATA names"
    )


def psnr(W: Any, truth: Any) -> float:
    """Return the peak signal-to-noise ratio in dB."""
    return float(10.0 * np.log10(255.0**2 / max(np.mean((np.asarray(W) - truth) ** 2), 1e-300)))


def packed(image: Any) -> str:
    """Return a picture as a text: whole grey values, those outside 0 to 255 cut off."""
    grey = np.clip(np.nan_to_num(np.rint(np.asarray(image))), 0, 255).astype(np.uint8)
    return base64.b64encode(zlib.compress(grey.tobytes(), 9)).decode()


def unpacked(text: str, height: int, width: int) -> Any:
    """Return the picture of a text."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(height, width)

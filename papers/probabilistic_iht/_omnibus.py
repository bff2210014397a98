"""GDS2910 of the Gene Expression Omnibus: found beside the other data sets, or downloaded, and read.

Nothing is downloaded by a run. ``python -m papers.probabilistic_iht._omnibus``, in the root of a clone, does it once.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

from hardthresh.datasets.files import DatasetError, check_encrypted, local_folders

NAME = "GDS2910.soft.gz"
URL = f"https://ftp.ncbi.nlm.nih.gov/geo/datasets/GDS2nnn/GDS2910/soft/{NAME}"
WAIT = 60.0  # seconds


def find(name: str) -> Path:
    """Return where a file of data is."""
    folders = local_folders()
    for folder in folders:
        if (folder / name).is_file():
            return Path(folder / name)
    raise DatasetError(f"{name} is in none of {', '.join(map(str, folders)) or 'no folders'}; set HARDTHRESH_DATA.")


def fetch_gds2910(url: str = URL) -> Path:
    """Return where GDS2910 is, after downloading it into the folder of downloads if it is nowhere.

    Raises
    ------
    DatasetError
        If the Omnibus cannot be reached, sends something else, or no folder is there to keep it in.
    """
    try:
        return find(NAME)
    except DatasetError as error:
        if not local_folders():
            raise DatasetError(f"There is no folder to keep {NAME} in; set HARDTHRESH_CACHE to one.") from error
    check_encrypted(url)
    folder = local_folders()[-1]
    kept, part = folder / NAME, folder / f"{NAME}.part"
    try:
        with urlopen(url, timeout=WAIT) as answer:
            content = answer.read()
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        read_soft(part)
        part.replace(kept)
    except (OSError, EOFError, ValueError, StopIteration) as error:
        part.unlink(missing_ok=True)
        raise DatasetError(
            f"{NAME} cannot be had from {url}: {error or type(error).__name__}. Nothing was kept. Download it where "
            "the Omnibus can be reached, and put it into the folder that HARDTHRESH_DATA names."
        ) from error
    return kept


def read_soft(path: Path) -> Any:
    """Return the table of a SOFT file of the Omnibus, samples in rows; NaN where it has "null".

    Written after the description of the format and tried on a made-up file only.
    """
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("!dataset_table_begin"):
                break
        columns = [at for at, name in enumerate(next(lines).rstrip("\n").split("\t")) if name.startswith("GSM")]
        table = []
        for line in lines:
            if line.startswith("!dataset_table_end"):
                break
            cells = line.rstrip("\n").split("\t")
            table.append([np.nan if cells[at] in ("", "null", "NULL") else float(cells[at]) for at in columns])
    return np.array(table).T


if __name__ == "__main__":
    try:
        print(fetch_gds2910())
    except DatasetError as error:
        raise SystemExit(str(error)) from None

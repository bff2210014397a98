"""Write a real set of the benchmark of prediction as a CSV file, for `hardthresh compare`.

    python benchmarks/export.py "tecator fat" tecator_fat.csv
    hardthresh compare tecator_fat.csv --target y --folds 5

The sets are read from the folder that HARDTHRESH_DATA names.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from prediction.instance import LOGISTIC
from prediction.real import find


def main() -> None:
    """Write the file, and print which half the set is in."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("title", help='such as "tecator fat", as in the tables of the page on prediction')
    parser.add_argument("file", type=Path)
    settings = parser.parse_args()
    real = find(settings.title)
    X, y = real.table()
    with settings.file.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["y", *(f"x{column}" for column in range(X.shape[1]))])
        for target, row in zip(y.tolist(), X.tolist(), strict=True):
            writer.writerow([int(target) if real.loss == LOGISTIC else target, *row])
    print(f"{settings.title}: {X.shape[0]} x {X.shape[1]}, {real.loss}, {real.half} half")


if __name__ == "__main__":
    main()

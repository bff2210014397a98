"""Draw the picture of the README: ``python docs/readme_figure.py`` writes docs/_static/readme.png."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold

from hardthresh import SparseLogisticRegressionCV
from hardthresh.datasets import load_colon
from hardthresh.report.plots import plot_coefficients, plot_cv

colon = load_colon(as_frame=True)
folds = StratifiedKFold(10, shuffle=True, random_state=0)
model = SparseLogisticRegressionCV(n_nonzero_coefs=range(1, 21), alpha=0.2, cv=folds)
model.fit(np.log2(colon.data), colon.target)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
plot_cv(model, ax=left)
plot_coefficients(model, ax=right)
figure.savefig(Path(__file__).parent / "_static" / "readme.png", dpi=110)

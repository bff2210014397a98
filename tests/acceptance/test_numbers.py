"""That every check of the specification of models, 1 to 27, has its tests.

They are here, or beside the tests that share their fixtures:

- 6 in `tests/estimators/test_several_outputs.py`; 16 in `tests/estimators/test_criterion.py`, and 17 there and in
  `tests/selection/test_golden_section.py`;
- 18, stability, in `tests/estimators/test_stability.py` and `tests/selection/test_stability.py`; what 100 halves cost
  is measured by `benchmarks/stability.py`;
- 19, knockoffs, in `tests/estimators/test_knockoffs.py` and `tests/selection/test_knockoffs.py`; false discoveries and
  power on fresh seeds by `benchmarks/knockoffs.py`;
- 20, intervals, in `tests/estimators/test_inference.py`; their coverage on fresh seeds by `benchmarks/inference.py`;
- 21, proofs, in `tests/solvers/test_branch_and_bound.py`; the times of its table by `benchmarks/exact.py`;
- 22, lower bounds, in `tests/certificates/test_lower_bounds.py`; 23, alternatives, in
  `tests/certificates/test_alternatives.py`;
- 24 in `tests/estimators/test_categories.py`; 25 in `tests/estimators/test_scikit_learn.py` and `test_cox.py`.
"""

import re
from pathlib import Path


def test_every_check_has_a_test_of_its_number():
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    found = {int(number) for text in texts for number in re.findall(r"^def test_check_(\d\d)_", text, re.MULTILINE)}
    assert found == {*range(1, 28)}

"""That every check of the specification of models has its tests: 1 to 17, and 24 to 27; 18 to 23 are still to come.

They are here, or beside the tests that share their fixtures. Check 16 is in `tests/estimators/test_criterion.py`, and
17 there and in `tests/selection/test_golden_section.py`. Check 6 is in `tests/estimators/test_several_outputs.py`,
24 in `tests/estimators/test_categories.py`, and 25 in `tests/estimators/test_scikit_learn.py` and `test_cox.py`.
"""

import re
from pathlib import Path


def test_every_check_has_a_test_of_its_number():
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py"))
    found = {int(number) for text in texts for number in re.findall(r"^def test_check_(\d\d)_", text, re.MULTILINE)}
    assert found >= {*range(1, 18), *range(24, 28)}

"""The run of scikit-learn's own tests on our models judges as it says, and its tests of OMP are as expected."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import sklearn

from levels import only_at

FOLDER = Path(__file__).parents[1] / "benchmarks" / "foreign"
RUN = runpy.run_path(str(FOLDER / "run.py"))
Outcome, judge, table = RUN["Outcome"], RUN["judge"], RUN["table"]

PASSED = Outcome("test_omp", "test_tol", "", "passed")
FAILED = Outcome("test_omp", "test_dtype", "float32-lbfgs", "failed")
OTHER_CASE = Outcome("test_omp", "test_dtype", "float64-lbfgs", "passed")


@pytest.mark.parametrize(
    ("outcomes", "entries", "said"),
    [
        ([PASSED], [], []),
        ([FAILED, OTHER_CASE], ["test_dtype[float32*]"], []),
        ([FAILED], [], ["test_dtype[float32-lbfgs] fails, and no entry"]),
        ([FAILED], ["test_dtype[float64*]"], ["[float32-lbfgs] fails", "test_dtype[float64*] is listed, but"]),
        ([FAILED, OTHER_CASE], ["test_dtype"], ["test_dtype[float64-lbfgs] passes, but is listed"]),
        ([PASSED], ["test_tol"], ["test_tol passes, but is listed"]),
        ([PASSED], ["test_to"], ["test_to is listed, but there is no such test"]),
        ([Outcome("test_omp", "test_tol", "", "skipped")], ["test_tol"], []),
    ],
)
def test_a_run_is_judged_by_the_list(outcomes, entries, said):
    problems = list(judge(outcomes, {"test_omp": dict.fromkeys(entries, "why"), "test_logistic": {"test_x": "why"}}))
    assert len(problems) == len(said)
    assert all(part in problem for part, problem in zip(said, problems, strict=True))


def test_the_table_counts_cases_and_says_why():
    lines = table([FAILED, OTHER_CASE], {"test_omp": {"test_dtype[float32*]": "double"}}, {"double": "in double"})
    assert lines.splitlines()[-1] == "| test_omp.test_dtype | 1 | 1 |  | in double |"


@only_at("pairs")
def test_orthogonal_matching_pursuit_by_the_tests_of_scikit_learn():
    command = [sys.executable, str(FOLDER / "run.py"), "test_omp"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 2:
        pytest.skip(f"the list is of the tests of another scikit-learn than {sklearn.__version__}")
    assert run.returncode == 0, run.stdout + run.stderr

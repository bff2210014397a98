"""Random numbers of the library have nothing in common with the data that users simulate."""

import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import hardthresh
from hardthresh.core.randomness import Purpose, generator


@pytest.mark.parametrize("purpose", Purpose)
def test_a_stream_is_not_that_of_simulated_data(purpose):
    """Zeros at the end of a seed change nothing: with a purpose of 0, the first stream is that of `default_rng(0)`."""
    for seed, number in product(range(3), range(3)):
        drawn = generator(seed, number, purpose).integers(2**63, size=4)
        for data in (seed, (seed, number), (seed, number, 0), (seed, number, 1)):
            assert not np.isin(drawn, np.random.default_rng(data).integers(2**63, size=100)).any()


def test_each_seed_number_and_purpose_has_its_own_stream():
    keys = [*product(range(3), range(3), Purpose)]
    assert len({int(generator(*key).integers(2**63)) for key in keys}) == len(keys) == 9 * len(Purpose.__members__)


def test_a_stream_is_the_same_in_every_version():
    """Answers to a seed are to be repeated with later versions: new purposes leave the old ones as they are."""
    assert {purpose.name: f"{purpose:x}" for purpose in Purpose} == {
        "BATCH_OF_GRADIENT": "67726164",
        "BATCH_OF_VALUE": "76616c75",
        "BATCH_OF_SECOND_VALUE": "76616c32",
        "HALVES_OF_BATCH": "70617274",
        "HALF_SAMPLES": "68616c66",
        "KNOCKOFFS": "636f7079",
        "PERMUTATIONS": "6f726472",
        "ORDER_OF_BLOCKS": "73687264",
        "FOLDS_OF_BLOCKS": "666f6c64",
        "HALVES_OF_BLOCKS": "68626c6b",
        "NULL_PERMUTATIONS": "6e756c6c",
        "ORDER_OF_ROWS": "726f7773",
        "REPEATED_SEARCHES": "72657074",
        "EXPLORED_ATTRIBUTES": "61747472",
        "TIED_DIRECTIONS": "74696573",
        "SIMULATED_STUDY": "706c616e",
        "DIRECTIONS": "64697273",
        "FINGERPRINT": "4f07",
    }


OF_THEIR_OWN = {
    "arrays/svd.py": "where an iteration starts: a constant of the algorithm, whatever the data",
    "attacks/problem.py": "the network and the images of the example of the conformance tests",
    "datasets/clinic.py": "simulated data",
    "datasets/graphs.py": "simulated data",
    "datasets/simulate.py": "simulated data",
    "estimators/linear/fingerprint.py": "a constant: the point at which two tables are compared",
    "estimators/linear/pinball_vertices.py": "a constant: ties of residuals are broken by it",
    "objectives/computed.py": "the directions of a check of derivatives",
    "objectives/function.py": "the functions of the examples of the conformance tests",
    "objectives/quadratic.py": "a constant: the points at which a function is compared with its quadratic",
}
"""The files that draw random numbers without a purpose, and what these are."""


def draws(tree):
    """Whether code calls `default_rng` outside the examples of the conformance tests, `_examples`."""
    if isinstance(tree, ast.FunctionDef) and tree.name == "_examples":
        return False
    own = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "default_rng"
    return own or any(draws(node) for node in ast.iter_child_nodes(tree))


def test_every_other_random_number_has_a_purpose():
    package = Path(hardthresh.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    found = {
        path.relative_to(package).as_posix()
        for path, text in texts.items()
        if "default_rng" in text and draws(ast.parse(text))
    }
    assert found - {"core/randomness.py"} == set(OF_THEIR_OWN)

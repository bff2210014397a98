"""A green run of the conformance suites must mean that they ran: a skip is a failure, unless a library is missing."""

from collections import Counter

import pytest
from cases import refuse_skip

COUNTS = pytest.StashKey[Counter]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count the tests of each file before some are deselected."""
    config.stash[COUNTS] = Counter(item.path.name for item in items)


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> Counter:
    """The number of tests of each file; a file of which single tests were asked for is left out."""
    counts = Counter(request.config.stash[COUNTS])
    for argument in request.config.args:
        if "::" in argument:
            counts.pop(argument.split("::")[0].rsplit("/")[-1], None)
    return counts


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        refuse_skip(report, str(call.excinfo.value) if call.excinfo else "unknown")
    return report

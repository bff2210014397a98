"""What engines report while they read: readings, bytes, and a line with the time that is left."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

import hardthresh as ht
from hardthresh.designs import Serial, Threads, from_arrays, logged_readings
from hardthresh.designs.reading_log import ReadingLog, shown_readings
from levels import only_at

N, D = 5000, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32)
Y = X[:, 1] - X[:, 4] + 0.1 * RNG.standard_normal(N)
TABLE = from_arrays(X, Y, rows=1024)
ENGINES = {
    "serial": Serial,
    "with a reader": lambda blocks: Serial(blocks, readers=1),
    "threads": lambda b: Threads(b, 3),
}


def products(X, y, weight, offset):
    return (X.T @ y,)


def first_column(X, y, weight, offset):
    return X[:, :1], y, weight, offset


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_each_reading_and_its_bytes_are_counted(engine):
    reader = engine(TABLE)
    with logged_readings() as log:
        reader.sweep(products)
        assert (log.readings, log.nbytes) == (1, X.nbytes)
        kept = reader.keep(first_column)
        assert (log.readings, log.nbytes) == (2, 2 * X.nbytes)
        reader.sweep(products, on=kept)  # no reading
        reader.sweep(products, columns=np.array([2, 3]))
    assert (log.readings, log.nbytes) == (reader.readings, 2 * X.nbytes + X.nbytes // 3) == (3, 280_000)
    reader.sweep(products)  # nobody asks any more
    assert str(log) == "3 readings, 280 kB"


def test_sparse_rows_have_the_bytes_of_their_entries():
    few = sp.random(3000, 50, density=0.1, format="csr", random_state=0)
    with logged_readings() as log:
        Serial(from_arrays(few, np.ones(3000), rows=1024)).sweep(products)
    assert few.data.nbytes < log.nbytes < few.data.nbytes * 2.2


def test_a_reading_that_fails_is_not_counted():
    def fails(X, y, weight, offset):
        raise RuntimeError

    with logged_readings() as log, pytest.raises(RuntimeError):
        Serial(TABLE).sweep(fails)
    assert log.readings == 0


def test_a_quiet_inner_block_reports_to_the_outer_one():
    with logged_readings() as log:
        with shown_readings(False):
            Serial(TABLE).sweep(products)
        with logged_readings() as inner:
            Serial(TABLE).sweep(products)
    assert (log.readings, inner.readings) == (1, 1)


def test_the_line_says_the_rate_and_the_time_that_is_left(monkeypatch):
    lines, now = [], iter([0.0, 2.0, 4.0, 8.0])
    monkeypatch.setattr("hardthresh.designs.reading_log.perf_counter", lambda: next(now))
    monkeypatch.setattr("hardthresh.core.progress._rich_line", lambda title, total: _noted(lines, title, total))
    log = ReadingLog(show=True)
    with log.reading(4) as count:
        for _ in range(3):
            count(1_000_000_000)
    assert lines == [
        "Reading 1 of 4 blocks",
        "1 GB, 500 MB/s, 6.0 s left",
        "2 GB, 500 MB/s, 4.0 s left",
        "3 GB, 375 MB/s, 2.7 s left",
    ]


class _noted:
    """In the place of a progress line: what it would show."""

    def __init__(self, lines, title, total):
        self.lines = lines
        lines.append(f"{title} of {total} blocks")

    def __enter__(self):
        return self.lines.append

    def __exit__(self, *raised):
        pass


def test_a_verbose_fit_shows_its_readings(capsys):
    quiet = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(TABLE)
    assert capsys.readouterr().err == ""
    loud = ht.SparseLinearRegression(n_nonzero_coefs=2, verbose=True).fit(TABLE)
    shown = capsys.readouterr().err
    readings = int(loud.history_["readings"][-1])
    assert re.findall(r"Reading (\d+)", shown) == [str(number) for number in range(1, readings + 1)]
    assert "left" in shown
    np.testing.assert_array_equal(quiet.coef_, loud.coef_)


@only_at("pairs")
def test_a_report_says_how_often_the_table_was_read(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    model = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(TABLE)
    text = ht.report.write_report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"{int(model.history_['readings'][-1])} reading" in text
    inside = ht.SparseLinearRegression(n_nonzero_coefs=2).fit(X, Y)
    assert "of the table;" not in ht.report.write_report(inside, tmp_path / "r.html").read_text(encoding="utf-8")

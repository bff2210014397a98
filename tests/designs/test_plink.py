"""A .bed file is the matrix of its genotypes, decoded one by one: checks 11 and 15 of scale.md."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import hardthresh as ht
from hardthresh import Bed, SparseLinearRegression, SparseLinearRegressionCV, SparseLogisticRegression
from hardthresh.core import CapabilityError, HardThreshError, InvalidInputError, compiled, threads
from hardthresh.designs import DenseDesign, SideBySide, Standardized, standardize
from hardthresh.designs.bed_file import BedFile
from hardthresh.designs.genotypes import select
from hardthresh.estimators.linear import criterion
from hardthresh.objectives import LinearModel
from hardthresh.solvers import StochasticIHT
from levels import at_most
from matrices import assert_is
from plink_files import draw, filled, write

COPIES = {0b00: 2.0, 0b01: np.nan, 0b10: 1.0, 0b11: 0.0}


def slow(path, n):
    """The obvious decoder: the copies of the first allele, missing ones as NaN, genotype by genotype."""
    data = Path(path).read_bytes()[3:]
    width = -(-n // 4)
    columns = [data[start : start + width] for start in range(0, len(data), width)]
    return np.array([[COPIES[column[i // 4] >> 2 * (i % 4) & 3] for column in columns] for i in range(n)])


@pytest.fixture(params=["compiled", "numpy"])
def either(request, monkeypatch):
    """The kernel, and the NumPy code in its place."""
    if request.param == "numpy":
        monkeypatch.setattr("hardthresh.designs.genotypes.kernel", lambda: None)
    elif compiled.kernel() is None:
        pytest.skip("the kernel was not built")


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_a_file_is_the_matrix_of_its_genotypes(either, tmp_path, n, missing):
    copies = draw(n, 7, seed=n, missing=missing)
    copies[0, 3] = np.nan
    copies[:, 5] = 2.0
    path = write(tmp_path / "x.bed", copies, rubbish=n % 4)
    np.testing.assert_array_equal(slow(path, n), copies)
    bed = Bed(path, n_samples=n)
    np.testing.assert_allclose(bed[:, :], filled(copies), rtol=1e-15)
    np.testing.assert_allclose(bed.means, filled(copies).mean(axis=0), rtol=1e-14, atol=1e-14)
    if n == 9:  # as many as the weights there
        assert_is(bed, filled(copies))
        assert_is(bed.columns(np.array([0, 3, 6])), filled(copies)[:, [0, 3, 6]])


def test_any_bytes_are_decoded(either, tmp_path):
    """All 256 bytes, in every place of a line of the kernel, and all lengths near one."""
    rng = np.random.default_rng(5)
    for n in (255, 256, 257, 258, 259, 1027):
        path = tmp_path / f"{n}.bed"
        path.write_bytes(b"\x6c\x1b\x01" + rng.integers(0, 256, 5 * -(-n // 4), dtype=np.uint8).tobytes())
        X, bed = filled(slow(path, n)), Bed(path, n_samples=n)
        r = rng.standard_normal((n, 2))
        np.testing.assert_allclose(bed.pullback(r), X.T @ r, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(bed.pullback_squares(abs(r), np.ones(5)), ((X - 1) ** 2).T @ abs(r), rtol=1e-12)
        np.testing.assert_allclose(bed.predict(r[:5, 0]), X @ r[:5, 0], rtol=1e-12, atol=1e-12)
        assert bed._variants.counts.sum(axis=1).tolist() == [n] * 5


def test_bed_reader_reads_the_same(tmp_path):
    """Check 11: the oracle, on many sizes."""
    reader = pytest.importorskip("bed_reader", reason="bed-reader is not installed")
    rng = np.random.default_rng(0)
    for number in range(200):
        n, p = int(rng.integers(1, 70)), int(rng.integers(1, 9))
        path = tmp_path / f"{number}.bed"
        path.write_bytes(b"\x6c\x1b\x01" + rng.integers(0, 256, p * -(-n // 4), dtype=np.uint8).tobytes())
        theirs = reader.open_bed(path, iid_count=n, sid_count=p, properties={}).read(dtype="float64")
        np.testing.assert_array_equal(slow(path, n), theirs)
        np.testing.assert_array_equal(Bed(path, n_samples=n)[:, :], filled(theirs))


@pytest.mark.parametrize("samples", [slice(3, 40), [5, 5, 2, 50], np.arange(61) % 3 == 0])
def test_some_samples_are_rows_of_the_matrix(either, tmp_path, samples):
    """Also one that is there twice; missing genotypes keep the mean of the whole file."""
    copies, C = draw(61, 300), np.random.default_rng(1).standard_normal((61, 2))
    X = np.hstack([C, filled(copies)])
    bed, rows = Bed(write(tmp_path / "x.bed", copies), C, n_samples=61)[samples], X[samples]
    n, d = rows.shape
    rng = np.random.default_rng(2)
    r, w, s = rng.standard_normal(n), rng.standard_normal(d), rng.random(n)
    few, close = w * (np.arange(d) % 50 == 0), {"rtol": 1e-11, "atol": 1e-11}
    assert bed.shape == rows.shape
    np.testing.assert_allclose(bed.pullback(r), rows.T @ r, **close)
    np.testing.assert_allclose(bed.predict(w), rows @ w, **close)
    np.testing.assert_allclose(bed.predict(few), rows @ few, **close)
    np.testing.assert_allclose(bed.pullback_squares(s, w), ((rows - w) ** 2).T @ s, **close)
    for mine, dense in zip(bed.moments(s), DenseDesign(rows).moments(s), strict=True):
        np.testing.assert_allclose(mine, dense, **close)
    folds = [np.arange(0, n, 2), np.array([1, 1, 0])]
    for centred in (True, False):
        mine, dense = (X.part_moments(s, r, folds, centred=centred) for X in (bed, DenseDesign(rows)))
        np.testing.assert_allclose(mine, dense, **close)
    chosen, others = np.array([0, 1, 2, 30, 299]), np.array([1, 40])
    np.testing.assert_array_equal(bed[:, chosen[::-1]], rows[:, chosen[::-1]])
    some = bed.columns(chosen)
    np.testing.assert_allclose(some.gram(s), rows[:, chosen].T * s @ rows[:, chosen], **close)
    np.testing.assert_allclose(some.gram(s, bed.columns(others)), rows[:, chosen].T * s @ rows[:, others], **close)
    np.testing.assert_allclose(some.rows(np.arange(2, n)).dense(), rows[2:, chosen])


def test_small_parts_are_dense_beside_packed_ones(tmp_path, monkeypatch):
    """A few columns are unpacked and standardised at once, and more of them never: their products are the same."""
    monkeypatch.setattr("hardthresh.designs.genotypes._SMALL", 61 * 5)
    copies, s = draw(61, 40), np.random.default_rng(0).random(61)
    design = standardize(Bed(write(tmp_path / "x.bed", copies), n_samples=61), s / s.sum(), scale=True, intercept=True)
    X = design.dense()
    few, many = np.array([3, 5, 39]), np.array([*range(0, 30, 2), 40])
    assert isinstance(design.columns(few), DenseDesign)
    assert isinstance(design.columns(many), Standardized)
    for left, right in ((few, many), (many, few), (many, few + 1)):
        product = design.columns(left).gram(s, design.columns(right))
        np.testing.assert_allclose(product, X[:, left].T * s @ X[:, right], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(design.columns(many).gram(s), X[:, many].T * s @ X[:, many], rtol=1e-10, atol=1e-10)


def test_rows_are_packed_again():
    rng = np.random.default_rng(0)
    packed, rows = rng.integers(0, 256, (3, 5), dtype=np.uint8), np.array([0, 19, 7, 7, 8])
    again = select(packed, rows)
    assert again.shape == (3, 2)
    for before, after in zip(packed, again, strict=True):
        codes = [before[i // 4] >> 2 * (i % 4) & 3 for i in rows] + [0] * 3
        assert [after[i // 4] >> 2 * (i % 4) & 3 for i in range(8)] == codes


def test_bits_do_not_depend_on_the_number_of_threads(either, tmp_path, monkeypatch):
    """Rule 3 of scale.md: 1, 2 and 4 threads."""
    copies = draw(90, 1500)
    path = write(tmp_path / "x.bed", copies)
    rng = np.random.default_rng(0)
    r, w, s = rng.standard_normal((90, 2)), rng.standard_normal(1500), rng.random(90)
    found = []
    for count in (1, 2, 4):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        bed = Bed(path, n_samples=90)
        model = SparseLinearRegression(n_nonzero_coefs=4).fit(bed, r[:, 0])
        products = (bed.pullback(r), bed.predict(w), *bed.moments(s), bed.pullback_squares(s), model.coef_)
        found.append([part.tobytes() for part in products])
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
@at_most(1)
def test_fits_are_those_of_the_matrix(either, tmp_path):
    """Least squares and cases with covariates, given and chosen numbers, weights, folds, predictions and storage."""
    rng = np.random.default_rng(3)
    copies = draw(240, 400, seed=3)
    C = rng.standard_normal((240, 2))
    bed = Bed(write(tmp_path / "x.bed", copies, names=True), C)
    X = np.hstack([C, filled(copies)])
    y = X[:, [50, 170, 300]] @ [1.0, -1.0, 0.8] + C @ [1.0, 2.0] + 0.5 * rng.standard_normal(240)
    weight = rng.integers(0, 3, 240).astype(float)
    for model, target in (
        (SparseLinearRegression(n_nonzero_coefs=3), y),
        (SparseLinearRegression(), y),
        (SparseLogisticRegression(n_nonzero_coefs=3), y > 0),
        (SparseLogisticRegression(), y > 0),
        (SparseLinearRegressionCV(n_nonzero_coefs=[0, 3, 9], cv=3), y),
    ):
        model.set_params(always_include=bed.covariate_names)
        mine = model.fit(bed, target, sample_weight=weight)
        coef, predicted = mine.coef_.copy(), mine.predict(bed)
        assert mine.feature_names_in_[[0, 1, 2, 401]].tolist() == ["covariate0", "covariate1", "rs0_A", "rs399_A"]
        ht.save(mine, tmp_path / "m.json")
        np.testing.assert_array_equal(ht.load(tmp_path / "m.json").predict(bed), predicted)
        np.testing.assert_array_equal(mine.transform(bed), X[:, mine.support_])
        assert "rs48_A" in str(mine.summary())
        assert 50 in mine.support_
        dense = model.set_params(always_include=[0, 1]).fit(X, target, sample_weight=weight)
        np.testing.assert_allclose(coef, dense.coef_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(predicted, dense.predict(X), rtol=1e-7)
    assert mine.certificate() is not None


def test_scikit_learn_splits_samples(tmp_path):
    copies = draw(90, 60)
    X, bed = filled(copies), Bed(write(tmp_path / "x.bed", copies), n_samples=90)
    y = X[:, 7] - X[:, 30] + 0.3 * np.random.default_rng(0).standard_normal(90)
    model = SparseLinearRegression(n_nonzero_coefs=2)
    np.testing.assert_allclose(cross_val_score(model, bed, y, cv=3), cross_val_score(model, X, y, cv=3))


def test_single_precision_and_copies_of_a_file(tmp_path):
    copies = draw(80, 40)
    path = write(tmp_path / "x.bed", copies, names=True)
    bed = Bed(path, dtype=np.float32)
    y = filled(copies)[:, 7].astype(np.float32)
    assert SparseLinearRegression(n_nonzero_coefs=1).fit(bed, y).coef_.dtype == np.float32
    assert bed.pullback(y).dtype == bed.columns(np.array([1])).dense().dtype == np.float32
    again = pickle.loads(pickle.dumps(bed))
    np.testing.assert_array_equal(again.pullback(y), bed.pullback(y))
    assert again.sample_ids[:2].tolist() == ["I0", "I1"]
    assert again.variant_ids[-1] == "rs39"
    assert bed[[3, 4]].sample_ids.tolist() == ["I3", "I4"]


def test_missing_genotypes_of_other_samples_count_as_in_the_fit(tmp_path):
    train = Bed(write(tmp_path / "train.bed", draw(50, 4)), n_samples=50)
    copies = np.full((3, 4), np.nan)
    new = Bed(write(tmp_path / "new.bed", copies), n_samples=3, means=train.means)
    np.testing.assert_allclose(new[:, :], np.tile(train.means, (3, 1)))
    with pytest.raises(InvalidInputError, match="means must be 4 numbers from 0 to 2"):
        Bed(tmp_path / "new.bed", n_samples=3, means=[1.0, 2.0, 3.0, 1.0])


def test_files_that_are_refused(tmp_path):
    path = write(tmp_path / "x.bed", draw(10, 6), names=True)
    data = path.read_bytes()
    for content, message in (
        (b"\x6c\x1b\x00" + data[3:], "by samples .*convert it with plink --make-bed"),
        (b"PK" + data, "begins with 504b6c, not 6c1b01"),
        (b"", "begins with nothing"),
        (data[:-1], r"has 20 bytes, which is not 3 \+ 3 p for 10 samples"),
        (data[:-3], r"x\.bim has 6 variants, and .* has 5"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=message):
            Bed(path)
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"has 10 samples, n_samples is 11"):
        Bed(path, n_samples=11)
    path.with_suffix(".bim").write_text("1 rs0 0\n")
    with pytest.raises(InvalidInputError, match=r"line 1 of .*3 fields; 5 are needed"):
        Bed(path)
    path.with_suffix(".bim").unlink()
    path.with_suffix(".fam").unlink()
    with pytest.raises(InvalidInputError, match=r"there is no .*x\.fam; give n_samples="):
        Bed(path)
    with pytest.raises(FileNotFoundError):
        Bed(tmp_path / "none.bed", n_samples=3)


def test_a_file_that_changes_is_refused(tmp_path):
    """Row 15: the file shorter than before, replaced, or gone; no partial answer."""
    path = write(tmp_path / "x.bed", draw(10, 6))
    bed, r, data = Bed(path, n_samples=10), np.ones(10), path.read_bytes()
    path.write_bytes(data[:-7])
    with pytest.raises(OSError, match=r"ends at byte 14: variants 3\.\.5, counted from 0, are missing"):
        bed.pullback(r)
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    with pytest.raises(HardThreshError, match="has changed since it was opened"):
        bed.pullback(r)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        bed.pullback(r)


def test_a_shorter_file_in_its_place_is_refused_whichever_columns_are_asked_for(tmp_path):
    """Row 15: the first column of another cohort is there, and must not pass for those of the opened file."""
    path = write(tmp_path / "x.bed", draw(10, 6))
    bed = Bed(path, n_samples=10)
    first = np.zeros(bed.shape[1])
    first[0] = 1.0
    bed.predict(first)
    write(path, 2 - draw(10, 5))
    with pytest.raises(OSError, match=r"ends at byte 18: variants 5\.\.5, counted from 0, are missing"):
        bed.predict(first)


def test_covariates_and_keys_that_are_refused(tmp_path):
    path = write(tmp_path / "x.bed", draw(10, 6))
    C = np.zeros((10, 2))
    C[3, 1] = np.nan
    for covariates, message in (
        (C, "covariate covariate1 is nan for sample 3"),
        (C[:9], r"covariates have shape \(9, 2\); \(10, q\) is needed"),
        ([["a"]] * 10, "covariates: could not convert"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            Bed(path, covariates, n_samples=10)
    bed = Bed(path, n_samples=10)
    for key, message in (([10], "samples are integers below 10"), (np.ones(9, dtype=bool), "mask of the samples")):
        with pytest.raises(InvalidInputError, match=message):
            bed[key]


def test_other_variants_or_alleles_are_refused(tmp_path):
    """A model knows the variants of its fit and their counted alleles."""
    copies = draw(60, 5)
    bed = Bed(write(tmp_path / "x.bed", copies, names=True))
    model = SparseLinearRegression(n_nonzero_coefs=1).fit(bed, filled(copies)[:, 2])
    lines = (tmp_path / "x.bim").read_text().replace("rs3 0 3 A G", "rs3 0 3 G A")
    (tmp_path / "x.bim").write_text(lines)
    with pytest.raises(InvalidInputError, match=r"column 3 .* is rs3_G, in the fit it was rs3_A"):
        model.predict(Bed(tmp_path / "x.bed"))
    with pytest.raises(InvalidInputError, match="X has 4 features, but SparseLinearRegression is expecting 5"):
        model.predict(Bed(write(tmp_path / "y.bed", copies[:, :4], names=True)))


def test_other_models_refuse_a_file(tmp_path):
    """They would read all of it into memory."""
    copies = draw(30, 6)
    bed, y = Bed(write(tmp_path / "x.bed", copies), n_samples=30), filled(copies)[:, 2]
    for model, target in (
        (ht.LowRankRegression(rank=1), y[:, None] * [1.0, 2.0]),
        (ht.SparseGaussianGraphicalModel(n_edges=2), None),
        (ht.Knockoffs(SparseLinearRegression()), y),
        (ht.LowRankImputer(rank=1), None),
    ):
        with pytest.raises(InvalidInputError, match=r"takes arrays .* X is Bed\('x.bed', 30 samples, 6 variants\)"):
            model.fit(bed, target)


def test_what_is_asked_of_a_fitted_model(tmp_path):
    """A split reads the file again; substitutes and proofs read the columns that they need."""
    copies = draw(80, 40)
    bed = Bed(write(tmp_path / "x.bed", copies, names=True))
    y = filled(copies)[:, 7] + 0.5 * np.random.default_rng(0).standard_normal(80)
    model = SparseLinearRegression(n_nonzero_coefs=1).fit(bed, y)
    assert model.get_feature_names_out().tolist() == ["rs7_A"]
    assert "rs7_A" in str(model.inference(bed, y, kind="split"))
    assert "rs7_A" in str(model.alternatives())
    assert model.prove().status is not None


def test_stochastic_solvers_refuse_a_file(tmp_path):
    """Section 6 of scale.md: a mini-batch would read all of it."""
    bed = Bed(write(tmp_path / "x.bed", draw(30, 6)), n_samples=30)
    y = np.arange(30.0)
    with pytest.raises(
        CapabilityError,
        match=r"StochasticIHT needs rows, .*each mini-batch would read the whole file.*another solver",
    ):
        SparseLinearRegression(n_nonzero_coefs=1, solver=StochasticIHT(step=0.1)).fit(bed, y)
    assert LinearModel(bed, y).rows is None
    assert LinearModel(SideBySide([DenseDesign(np.eye(30)), DenseDesign(np.eye(30))]), y).rows is not None


@pytest.mark.slow
def test_models_of_a_path_share_readings(tmp_path, monkeypatch):
    """Cases and controls with EBIC: 18 readings for the 22 models that are compared; one by one these took 67."""
    copies, read = draw(300, 3000), []
    bed, whole = Bed(write(tmp_path / "x.bed", copies), n_samples=300), BedFile.read

    def counted(file, columns):
        packed = whole(file, columns)
        read.append(len(packed))
        return packed

    monkeypatch.setattr(BedFile, "read", counted)
    u = filled(copies)[:, [50, 170, 1300]] @ [1.0, -1.0, 0.8] + np.random.default_rng(0).standard_normal(300)
    model = SparseLogisticRegression().fit(bed, u > 0)
    assert model.candidates_.size == 22
    assert sum(read) <= 25 * 3000


def planted(tmp_path, n, p, k, seed=0):
    """A file, and a trait of k variants with as much noise."""
    copies, rng = draw(n, p, seed), np.random.default_rng(seed)
    u = filled(copies)[:, rng.choice(p, k, replace=False)] @ rng.standard_normal(k)
    return Bed(write(tmp_path / "x.bed", copies), n_samples=n), u / u.std() + rng.standard_normal(n)


def test_a_fit_reads_a_file_few_times(tmp_path):
    """Counts, the null model, two readings for the path to k, the answer, and one or two to check it: it was 12."""
    bed, y = planted(tmp_path, 400, 3000, 30)
    model = SparseLinearRegression(n_nonzero_coefs=30).fit(bed, y)
    in_memory = SparseLinearRegression(n_nonzero_coefs=30).fit(bed[:, :], y)
    readings = model.history_["readings"]
    assert 2.0 <= readings[0] < 2.1  # the start: counts and the null model
    assert readings[-1] < 8.5
    value, other = (1.0 - fit.score(bed, y) for fit in (model, in_memory))
    assert value <= 1.005 * other
    assert "readings" not in in_memory.history_


def test_readings_are_those_of_the_file(tmp_path):
    """A share for some columns; those of a fit begin with it."""
    bed, y = planted(tmp_path, 60, 300, 2)
    assert bed.readings == 0.0
    assert len(bed.means) == 300
    assert bed.readings == 1.0
    bed.columns(np.arange(30))
    assert bed.readings == pytest.approx(1.1)
    bed[:40].pullback(y[:40])
    assert bed.readings == pytest.approx(2.1)  # also those of some samples
    assert np.isnan(DenseDesign(np.eye(3)).readings)
    design = standardize(bed, np.full(60, 1 / 60), scale=True, intercept=True)
    assert design.readings == 0.0  # equal weights: the counts say all
    design.pullback(y)
    assert design.readings == pytest.approx(1.0)
    assert bed.readings == pytest.approx(3.1)
    assert LinearModel(design, y).readings == design.readings


def test_covariates_that_change_are_noticed_without_a_reading(tmp_path):
    """A file is refused once it has changed; covariates are the user's array, and looked at."""
    copies, C = draw(200, 5000), np.asfortranarray(np.random.default_rng(0).standard_normal((200, 2)))
    bed = Bed(write(tmp_path / "x.bed", copies), C, n_samples=200)
    model = SparseLinearRegression(n_nonzero_coefs=2, always_include=[0, 1]).fit(bed, filled(copies)[:, 7] + C[:, 0])
    assert bed.readings - model.history_["readings"][-1] < 0.3  # of 1,000 columns
    C[3, 1] += 1.0
    with pytest.raises(HardThreshError, match="changed"):
        model.certificate()


def test_numbers_of_variants_are_fitted_once(tmp_path, monkeypatch):
    """Where the largest number is the best, a criterion fits only those beyond it: each costs half a reading."""
    bed, y = planted(tmp_path, 400, 500, 8)
    compared, original = [], criterion._compared
    monkeypatch.setattr(criterion, "_compared", lambda *given: (compared.append(list(given[3])), original(*given))[1])
    monkeypatch.setattr(criterion, "_FIRST", 4)
    model = SparseLinearRegression().fit(bed, y)
    assert compared == [[*range(5)], [*range(5, 9)]]
    assert model.candidates_.tolist() == [*range(9)]
    in_memory = SparseLinearRegression().fit(bed[:, :], y)
    assert compared[2:] == [[*range(5)], [*range(9)]]  # there they share a path
    assert in_memory.support_.tolist() == model.support_.tolist()


def test_a_ridge_proves_a_bound_of_a_file(tmp_path):
    """The bound asks for predictions, which blocks of rows do not keep and a file of genotypes does."""
    bed, y = planted(tmp_path, 80, 40, 2)
    found, same = (
        SparseLinearRegression(n_nonzero_coefs=2, alpha=0.5).fit(X, y).certificate() for X in (bed, bed[:, :])
    )
    assert found.lower_bound == pytest.approx(same.lower_bound, rel=1e-6)


@pytest.mark.slow
@at_most(1)
@pytest.mark.parametrize("name", ["hapmap_chr10", "mice_genotypes"])
def test_real_genotypes_give_the_fit_of_the_matrix(tmp_path, name):
    """Check 11."""
    folder = os.environ.get("HARDTHRESH_DATA", "")
    if not Path(folder, f"{name}.npz").exists():
        pytest.skip("HARDTHRESH_DATA does not name a folder with it")
    data = np.load(Path(folder, f"{name}.npz"), allow_pickle=False)
    whole = data["X"][:, :3000].astype(float)
    copies = np.where((whole >= 0) & (whole <= 2), whole, np.nan)[:600]
    copies = copies[:, np.nanstd(copies, axis=0) > 0]
    X, bed = filled(copies), Bed(write(tmp_path / "x.bed", copies), n_samples=len(copies))
    y = X[:, 5::600] @ np.ones(5) + np.random.default_rng(0).standard_normal(len(X))
    mine, dense = (SparseLinearRegression(n_nonzero_coefs=5).fit(data, y) for data in (bed, X))
    np.testing.assert_array_equal(mine.support_, dense.support_)
    np.testing.assert_allclose(mine.coef_, dense.coef_, rtol=1e-8, atol=1e-10)


def test_a_simulated_trait_of_another_package():
    """The .bed file of MendelIHT.jl: all variants with effects of .4 and more, and none of the 9,992 others."""
    folder = Path(os.environ.get("HARDTHRESH_DATA", ""), "plink")
    if not (folder / "normal.bed").exists():
        pytest.skip("HARDTHRESH_DATA does not name a folder with it")
    effects = dict(line.split(",") for line in (folder / "normal_true_beta.csv").read_text().split()[1:])
    model = SparseLinearRegression().fit(Bed(folder / "normal.bed"), np.loadtxt(folder / "phenotypes.csv"))
    large = {f"{name}_1" for name, effect in effects.items() if abs(float(effect)) >= 0.4}
    assert set(model.get_feature_names_out()) == large
    assert len(large) == len(effects) - 1 == 7


@pytest.mark.slow
def test_pure_python_gives_the_same_products(tmp_path):
    """HARDTHRESH_PURE=1."""
    path = write(tmp_path / "x.bed", draw(101, 30))
    program = (
        f"import numpy as np, hardthresh as ht; r = np.sin(np.arange(101.0)); b = ht.Bed({str(path)!r}, n_samples=101)"
    )
    program += "; print(','.join(map(repr, b.pullback(r).tolist())))"
    run = [
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | setting, capture_output=True, text=True, check=True
        ).stdout
        for setting in ({"HARDTHRESH_PURE": "1"}, {"HARDTHRESH_PURE": ""})
    ]
    np.testing.assert_allclose(*(np.array(out.split(","), dtype=float) for out in run), rtol=1e-12, atol=1e-12)

"""Least squares over partitions: the same for any partition, and as others compute it."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import toclip


def data(n: int = 4000, d: int = 12, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    # Means far from zero: sums of squares would lose digits there.
    x = rng.normal(size=(n, d)) @ np.diag(np.arange(1, d + 1) ** -0.5) + 100.0
    return x, x @ np.linspace(-1, 1, d) + 0.3 * rng.standard_t(3, size=n) + 7.0


def split(n: int, pieces: int, seed: int) -> list[np.ndarray]:
    """A random partition into pieces of random sizes, none empty."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, n), pieces - 1, replace=False))
    return np.split(rng.permutation(n), cuts)


@pytest.mark.parametrize("pieces", [1, 2, 7, 50, 1000])
def test_any_partition_gives_the_same(pieces: int) -> None:
    x, y = data()
    whole, whole_residuals = toclip.fit([(x, y)])
    found, residuals = toclip.fit([(x[rows], y[rows]) for rows in split(len(x), pieces, pieces)])
    assert found.count == len(x)
    for name in ("theta", "mean", "target_mean", "eigenvalues", "residual_variance"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-10)
    np.testing.assert_allclose(found.eigenvectors, whole.eigenvectors, atol=1e-9)
    # Residuals differ in the last bit, which moves one that lies on the edge of a bin.
    assert residuals.count == whole_residuals.count
    assert residuals.mean_square == pytest.approx(whole_residuals.mean_square, rel=1e-6)


def test_least_squares_as_numpy_has_it() -> None:
    x, y = data()
    found, residuals = toclip.fit([(x[:1000], y[:1000]), (x[1000:], y[1000:])])
    centred = x - x.mean(axis=0)
    theta, left, *_ = np.linalg.lstsq(centred, y - y.mean(), rcond=None)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-9)
    assert found.residual_variance == pytest.approx(left[0] / len(x), rel=1e-9)
    assert residuals.mean_square == pytest.approx(left[0] / len(x), rel=2e-3)
    np.testing.assert_allclose(found.eigenvalues, np.linalg.eigvalsh(np.cov(x.T, ddof=0))[::-1], rtol=1e-9)
    ridge, _ = toclip.fit([(x, y)], ridge=0.1)
    k = np.cov(x.T, ddof=0)
    expected = np.linalg.solve(k + 0.1 * np.linalg.norm(k, 2) * np.eye(12), centred.T @ (y - y.mean()) / len(x))
    np.testing.assert_allclose(ridge.theta, expected, rtol=1e-9)


def test_a_sketch_is_the_same_for_any_partition_and_close_to_its_values() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.standard_t(2.5, size=200_000), [0.0, 0.0, 1e-300, -1e12]])
    whole = toclip.Residuals(values)
    parts = [toclip.Residuals(values[rows]) for rows in split(len(values), 31, 3)]
    assert sum(parts) == whole and whole.count == len(values)
    values = values[:-1]
    small = toclip.Residuals(values)
    assert small.mean_square == pytest.approx(np.mean(values**2), rel=2e-3)
    for p in (0.001, 0.1, 0.25, 0.75, 0.999):
        assert small.quantile(p) == pytest.approx(np.quantile(values, p), rel=2.5e-3)
    # The distribution clips like the residuals themselves.
    exact = toclip.factors(toclip.noise.empirical(values), r=0.3, c=[0.2, 1.0, 5.0])
    found = toclip.factors(small.noise(), r=0.3, c=[0.2, 1.0, 5.0])
    np.testing.assert_allclose(found.mu, exact.mu, rtol=1e-3)
    np.testing.assert_allclose(found.m2, exact.m2, rtol=1e-3)
    np.testing.assert_allclose(found.nu, exact.nu, rtol=4e-3)
    # Of more than 100,000 residuals, shares of them keep the mean square of the sketch.
    unclipped = toclip.factors(small.noise(), r=0.0, c=np.inf)
    assert float(unclipped.m2) == pytest.approx(small.mean_square, rel=1e-9)


def test_a_problem_starts_at_the_risk_of_the_data() -> None:
    x, y = data()
    found, residuals = toclip.fit([(x, y)])
    start = np.linspace(0, 1, 12)
    problem = found.problem(residuals, start=start, learning_rate=0.1, clip=0.5)
    offset = start - found.theta
    assert problem.risk == pytest.approx(0.5 * offset @ np.cov(x.T, ddof=0) @ offset, rel=1e-9)
    assert problem.dim == pytest.approx(found.intrinsic_dim)


def test_the_command_finds_the_same(tmp_path: Path) -> None:
    command = shutil.which("toclip") or str(Path(__file__).parents[2] / "target" / "release" / "toclip")
    if not Path(command).exists():
        pytest.skip("the command toclip is not built")
    x, y = data()
    np.savetxt(tmp_path / "data.csv", np.column_stack([x, y]), delimiter=",", fmt="%.17g",
               header=",".join([*(f"x{k}" for k in range(12)), "y"]), comments="")
    done = subprocess.run([command, "fit", "data.csv", "--features", "none", "--json", "--runs", "2"],
                          cwd=tmp_path, check=True, capture_output=True, text=True)
    given = json.loads(done.stdout)
    found, _ = toclip.fit([(x[k::3], y[k::3]) for k in range(3)])
    assert given["dim"] == pytest.approx(found.intrinsic_dim, rel=1e-6)
    assert given["least_squares"]["mse"] == pytest.approx(found.residual_variance, rel=1e-6)


def test_files_functions_and_executors(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    x, y = data(900)
    files = []
    for k in range(3):
        columns = {f"x{j}": x[k::3, j] for j in range(12)}
        # The target is not the last column.
        table = arrow.table({"y": y[k::3], **columns})
        files.append(tmp_path / f"part-{k}.parquet")
        parquet.write_table(table, files[-1])
    expected, residuals = toclip.fit([(x[k::3], y[k::3]) for k in range(3)])
    found, others = toclip.fit(files, target="y")
    assert np.array_equal(found.theta, expected.theta) and others == residuals
    found, _ = toclip.fit([lambda k=k: (x[k::3], y[k::3]) for k in range(3)])
    assert np.array_equal(found.theta, expected.theta)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        found, others = toclip.fit(files, target="y", executor=executor)
    assert np.array_equal(found.theta, expected.theta) and others == residuals
    with pytest.raises(ValueError, match=r"has no column 'z'; expected one of: y, x0, x1"):
        toclip.fit(files, target="z")
    # Columns are found by name, and other columns are refused.
    swapped = parquet.read_table(files[1])
    parquet.write_table(swapped.select(swapped.column_names[::-1]), files[1])
    found, _ = toclip.fit(files, target="y")
    assert np.array_equal(found.theta, expected.theta)
    # A value that is missing is found in its file.
    for value, message in ((None, "has no value in 1 of 300 rows"), (np.inf, "has a value in row 2")):
        values = swapped.column("x3").to_pylist()
        values[2] = value
        column = arrow.array(values, arrow.float64())
        parquet.write_table(swapped.set_column(4, "x3", column), files[1])
        with pytest.raises(ValueError, match=f"part-1.parquet: the column 'x3' {message}"):
            toclip.fit(files, target="y")
    parquet.write_table(swapped.rename_columns(["y", *(f"z{j}" for j in range(12))]), files[1])
    with pytest.raises(ValueError, match=r"part-1.parquet has the columns y, z0.*expected those of"):
        toclip.fit(files, target="y")
    for target in (99, 1.5, ["y"]):
        with pytest.raises(ValueError, match="target must be the name or the number of a column"):
            toclip.fit(files, target=target)
    with pytest.raises(ValueError, match="partitions must be a list"):
        toclip.fit(str(files[0]))


def test_dask_partitions() -> None:
    distributed = pytest.importorskip("distributed")
    dask_array = pytest.importorskip("dask.array")
    x, y = data()
    expected, residuals = toclip.fit([(x[k : k + 1000], y[k : k + 1000]) for k in range(0, 4000, 1000)])
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        # As in docs/sweeps.md: the blocks of a Dask array, each where it lies.
        blocks = dask_array.from_array(x, chunks=(1000, -1)).to_delayed().ravel()
        targets = dask_array.from_array(y, chunks=1000).to_delayed().ravel()
        import dask

        parts = [dask.delayed(toclip.Moments)(a, b) for a, b in zip(blocks, targets, strict=True)]
        moments = client.compute(dask.delayed(sum)(parts)).result()
        found = moments.fit()
        left = [dask.delayed(found.residuals)(a, b) for a, b in zip(blocks, targets, strict=True)]
        others = client.compute(dask.delayed(sum)(left)).result()
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-10)
    assert others.mean_square == pytest.approx(residuals.mean_square, rel=1e-6)


def test_data_that_cannot_be_fitted_are_refused() -> None:
    x, y = data(50, 3)
    for arguments, message in [
        ((x, y[:-1]), r"features has shape \(50, 3\) and targets \(49,\); expected"),
        ((x[:, 0], y), r"features has shape \(50,\)"),
        ((np.where(x == x[7, 1], np.nan, x), y), "features: sample 7 has a value that is not"),
    ]:
        with pytest.raises(ValueError, match=message):
            toclip.Moments(*arguments)
    with pytest.raises(ValueError, match="moments of 3 and of 2 features cannot be added"):
        toclip.Moments(x, y) + toclip.Moments(x[:, :2], y)
    with pytest.raises(ValueError, match="the covariance is singular: 1 of 4 eigenvalues"):
        toclip.Moments(np.column_stack([x, x[:, 0]]), y).fit()
    assert np.all(np.isfinite(toclip.Moments(np.column_stack([x, x[:, 0]]), y).fit(1e-6).theta))
    with pytest.raises(ValueError, match="every feature is constant"):
        toclip.Moments(np.ones((5, 2)), y[:5]).fit()
    with pytest.raises(ValueError, match="ridge must be a number, at least 0, not -1"):
        toclip.Moments(x, y).fit(-1)
    with pytest.raises(ValueError, match="partitions is empty"):
        toclip.fit([])
    with pytest.raises(ValueError, match="a partition must be a pair of features and targets"):
        toclip.fit([3])
    with pytest.raises(ValueError, match="residual 1 is not a finite number"):
        toclip.Residuals([0.0, np.inf])


def test_empty_partitions_are_left_out() -> None:
    x, y = data(100, 3)
    found, _ = toclip.fit([(x[:0], y[:0]), (x, y), (x[:0], y[:0])])
    assert np.array_equal(found.theta, toclip.fit([(x, y)])[0].theta)
    with pytest.raises(ValueError, match="every partition is empty"):
        toclip.fit([(x[:0], y[:0])])
    with pytest.raises(ValueError, match="without a mask"):
        toclip.Moments(np.ma.masked_array(x, mask=x > 101), y)


def test_moments_and_residuals_survive_pickles() -> None:
    x, y = data(50, 3)
    moments = toclip.Moments(x, y)
    assert pickle.loads(pickle.dumps(moments)) == moments
    assert repr(moments) == "<toclip.Moments: 50 samples of 3 features>"
    found = moments.fit()
    assert pickle.loads(pickle.dumps(found)) == found and list(found.to_dict()) == ["theta", "mean", "eigenvalue"]
    assert "50 samples, 3 features" in repr(found)
    residuals = found.residuals(x, y)
    assert pickle.loads(pickle.dumps(residuals)) == residuals

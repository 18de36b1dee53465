"""Sweeps: the same table from threads, processes, Dask, Ray, executorlib and submitit."""

from __future__ import annotations

import csv
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import toclip

SPEC = {
    "name": "tails",
    "spectrum": {"kind": "power_law", "dim": 100, "exponent": 0.2},
    "start": {"kind": "uniform", "norm": 1.0},
    "noise": {"family": "student_t", "df": 2.5, "scale": 0.5},
    "time": 3.0,
    "points": 11,
    "learning_rate": 0.5,
    "methods": ["ode", "sgd"],
    "ensemble": {"runs": 4},
    "keep": ["final_risk", "curves"],
    "vary": {"clip": [0.3, 1.0, "none"], "noise.df": {"linear": [1.5, 3.0], "count": 10}, "batch": [1, 4]},
}

# Long enough that a worker can be killed in the middle: some 20 ms a cell.
LONG = {**SPEC, "ensemble": {"runs": 100}, "keep": ["final_risk"]}


@pytest.fixture(scope="module")
def expected() -> toclip.SweepResult:
    return toclip.sweep(SPEC)


@pytest.fixture(scope="module")
def long() -> toclip.SweepResult:
    return toclip.sweep(LONG)


def test_table_and_cells(expected: toclip.SweepResult) -> None:
    assert len(expected) == 60 and expected.keys == ["batch", "clip", "noise.df"]
    assert expected["batch"].dtype.kind == "i" and expected["clip"].max() == np.inf
    cell = 17
    sweep = toclip.Sweep(SPEC)
    alone = toclip.experiment(sweep.experiment(cell))
    assert expected["ode_final_risk"][cell] == alone["ode"].risk[-1]
    curves = expected.curves
    mine = (curves["cell"] == cell) & (curves["method"] == "ode")
    assert np.array_equal(curves["risk"][mine], alone["ode"].risk)
    assert np.all(np.isnan(curves["low"][mine])) and np.sum(curves["method"] == "sgd") == 60 * 11
    # Without clipping the ODE ends where the variance is infinite.
    diverged = (expected["clip"] == np.inf) & (expected["noise.df"] <= 2)
    assert np.all(np.isinf(expected["ode_final_risk"]) == diverged)


def test_the_command_writes_the_same_table(expected: toclip.SweepResult, tmp_path: Path) -> None:
    toclip_command = shutil.which("toclip") or str(
        Path(__file__).parents[2] / "target" / "release" / "toclip"
    )
    if not Path(toclip_command).exists():
        pytest.skip("the command toclip is not built")
    (tmp_path / "tails.toml").write_text(toclip.Sweep(SPEC).toml)
    run = lambda *args: subprocess.run([toclip_command, *args], cwd=tmp_path, check=True)  # noqa: E731
    run("sweep", "tails.toml", "--quiet")
    run("sweep", "export", "results/tails.sweep", "--out", "tails.csv", "--quiet")
    with (tmp_path / "tails.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name, column in expected.columns().items():
        if column.dtype.kind in "if":
            given = np.array([float(row[name] or "nan") for row in rows])
            assert np.array_equal(given, column, equal_nan=True), name
        else:
            assert [row[name] for row in rows] == list(column)


def test_threads_and_processes(expected: toclip.SweepResult) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert toclip.sweep(SPEC, executor) == expected
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert toclip.sweep(SPEC, executor, group=7) == expected


def test_forked_processes() -> None:
    """In a process of its own: a fork copies the threads of whatever else the tests imported."""
    code = f"""
import toclip
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
spec = {SPEC!r}
expected = toclip.sweep(spec)
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
    assert toclip.sweep(spec, executor, group=7) == expected
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_results_arrive_as_they_complete_with_progress() -> None:
    seen: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as executor:
        cells = toclip.Sweep(SPEC).as_completed(executor, group=5, progress=lambda *at: seen.append(at))
        first = next(cells)
        assert first.settings["batch"] == 1 and set(first.values) == set(toclip.Sweep(SPEC).columns)
        assert len([first, *cells]) == 60
    assert seen[-1] == (60, 60) and [done for done, _ in seen] == list(range(1, 61))


def test_only_submit_done_and_result_are_used(expected: toclip.SweepResult) -> None:
    class Later:
        """A future that is done at the third look, so that groups finish in another order."""

        def __init__(self, call):
            self.call, self.looks = call, 0

        def done(self):
            self.looks += 1
            return self.looks >= 1 + id(self) % 3

        def result(self):
            return self.call()

    class Executor:
        def submit(self, function, *args):
            return Later(lambda: pickle.loads(pickle.dumps(function))(*args))

    assert toclip.sweep(SPEC, Executor(), group=3) == expected


def test_dask(expected: toclip.SweepResult, long: toclip.SweepResult) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        assert toclip.sweep(SPEC, client) == expected
        pids = list(client.run(os.getpid).values())
        assert _killed_in_the_middle(client, lambda: pids[0]) == long


def test_ray(expected: toclip.SweepResult, long: toclip.SweepResult) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        assert toclip.sweep(SPEC, ray) == expected
        assert _killed_in_the_middle(ray, _ray_worker) == long
    finally:
        ray.shutdown()


def test_executorlib(expected: toclip.SweepResult) -> None:
    executorlib = pytest.importorskip("executorlib")
    with executorlib.SingleNodeExecutor(max_workers=2) as executor:
        assert toclip.sweep(SPEC, executor, group=20) == expected


def test_submitit(expected: toclip.SweepResult, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path)
    executor.update_parameters(timeout_min=5)
    assert toclip.sweep(SPEC, executor, group=30) == expected


def _killed_in_the_middle(executor, victim) -> toclip.SweepResult:
    """The table of a sweep during which a worker gets SIGKILL."""
    sweep = toclip.Sweep(LONG)
    cells = []
    killed = False
    for cell in sweep.as_completed(executor, group=2):
        cells.append(cell)
        if len(cells) >= 10 and not killed:
            os.kill(victim(), signal.SIGKILL)
            killed = True
    assert killed and len(cells) == len(sweep), "a cell is lost or there twice"
    return toclip.SweepResult(sweep, cells)


def _ray_worker() -> int:
    """A process of Ray that this process started and that runs cells now."""
    for _ in range(200):
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                runs = b"ray::_run_group" in (folder / "cmdline").read_bytes()
                if runs and _is_descendant(int(folder.name)):
                    return int(folder.name)
            except OSError:
                continue
        time.sleep(0.01)
    raise AssertionError("Ray runs no cells")


def _is_descendant(pid: int) -> bool:
    """Whether this process started that one, or one of those that did."""
    while pid > 1 and pid != os.getpid():
        # The name is in parentheses and may have spaces in it.
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == os.getpid()


def test_data_frames_and_pickles(expected: toclip.SweepResult) -> None:
    pandas = pytest.importorskip("pandas")
    frame = expected.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame)[:4] == ["cell", "batch", "clip", "noise.df"]
    assert pickle.loads(pickle.dumps(expected)) == expected
    sweep = pickle.loads(pickle.dumps(toclip.Sweep(SPEC)))
    assert len(sweep) == 60 and sweep.settings(3) == toclip.Sweep(SPEC).settings(3)
    assert "60 cells over batch, clip, noise.df" in repr(expected)
    assert "…" in expected._repr_html_() and expected.to_dict()["batch"][0] == 1


def test_pictures(expected: toclip.SweepResult) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = expected.plot(x="noise.df", y="clip", value="ode_final_risk")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("noise.df", "clip")
    line = toclip.sweep({**SPEC, "methods": ["ode"], "vary": {"clip": [0.1, 1.0, 10.0]}}).plot()
    assert line.get_xscale() == "log" and len(line.lines[0].get_xdata()) == 3
    with pytest.raises(ValueError, match="unknown column 'clipp'; expected one of: cell, batch"):
        expected.plot(x="clipp")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vary": {}}, "the sweep varies nothing"),
        ({"vary": {"clip": []}}, "vary.clip: the list is empty"),
        ({"vary": {"clipp": [1.0]}}, "unknown key `clipp`; did you mean `clip`?"),
        ({"vary": {"clip": [0.5, -1.0]}}, r"cell 1 \(clip = -1\): clip is -1"),
        ({"vary": {"noise": [1], "noise.df": [2]}}, "inside a key that varies itself"),
        ({"vary": {"noise.df": [2], "noise": [1]}}, "`noise` is given twice, or varies with keys inside it"),
        ({"vary": {"clip": {"linear": [0.1, 1], "count": 10**6}, "time": {"linear": [1, 2], "count": 10**6}}},
         "the sweep has 1e12 cells"),
        ({"keep": ["final_loss"], "vary": {"clip": [1.0]}}, "needs a `model`"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_runs(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        toclip.sweep({**SPEC, **change})


def test_bad_executors_and_files() -> None:
    with pytest.raises(ValueError, match="executor must have a method submit"):
        toclip.sweep(SPEC, 3)
    for group in (0, True, 2.0, "2"):
        with pytest.raises(ValueError, match=f"group must be an integer, at least 1, not {group!r}"):
            toclip.sweep(SPEC, group=group)
    with ThreadPoolExecutor(1) as executor:
        assert len(toclip.sweep({**SPEC, "vary": {"clip": [0.3, 1.0]}}, executor, group=np.int64(2))) == 2
    with pytest.raises(OSError, match=r"cannot read the sweep .*nowhere.toml"):
        toclip.sweep("nowhere.toml")
    sweep = toclip.Sweep(SPEC)
    for cell in (60, -1, 10**30, 1.5, True):
        for ask in (sweep.settings, sweep.experiment):
            with pytest.raises(ValueError, match=r"unknown cell .*; expected a number from 0 to 59"):
                ask(cell)
    assert sweep.settings(np.int64(3)) == sweep.settings(3)


def test_lost_cells_are_noticed_and_dictionaries_are_left_alone() -> None:
    class Forgetful:
        def submit(self, function, *args):
            return ThreadPoolExecutor(1).submit(lambda: (lambda rows, t: (rows[:-1], t))(*function(*args)))

    with pytest.raises(RuntimeError, match=r"the executor returned other cells than \d+ to \d+"):
        toclip.sweep(SPEC, Forgetful(), group=5)
    vary = {"noise": {"df": [2.5, 3.0]}, "noise.scale": [0.5, 1.0]}
    assert toclip.Sweep({**SPEC, "vary": vary, "clip": 1.0}).keys == ["noise.df", "noise.scale"]
    assert vary == {"noise": {"df": [2.5, 3.0]}, "noise.scale": [0.5, 1.0]}


def test_few_groups_go_out_before_the_first_result() -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, function, *args):
            Counting.submitted += 1
            return super().submit(function, *args)

    with Counting(2) as executor:
        toclip.sweep(SPEC, executor)
    assert Counting.submitted <= 20


@pytest.mark.parametrize("group", [None, 1])
def test_many_workers_are_kept_busy(group: int | None) -> None:
    """Every worker waits until all 48 have a group."""
    everyone = threading.Barrier(48)

    class Meeting(ThreadPoolExecutor):
        def submit(self, function, *args):
            return super().submit(self.meet, function, *args)

        def meet(self, function, *args):
            if args[2] < 48:
                everyone.wait(timeout=60)
            return function(*args)

    with Meeting(48) as executor:
        assert len(toclip.sweep(SPEC, executor, group=group)) == 60


def test_a_failure_of_the_executor_reaches_the_caller() -> None:
    class Broken:
        def submit(self, function, *args):
            raise RuntimeError("the cluster is gone")

    with pytest.raises(RuntimeError, match="the cluster is gone"):
        toclip.sweep(SPEC, Broken())

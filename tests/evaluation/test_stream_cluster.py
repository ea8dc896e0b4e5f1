"""Batches counted by the processes of a dask cluster are those of one process."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl
import pytest

import abstain as ab
from abstain.errors import InputError, MissingInputError
from abstain.tables.scan import chunks

DASK = ab.StreamOptions(engine="dask")


def _files(folder: Path, parts: int = 4, rows: int = 400) -> str:
    rng = np.random.default_rng(2)
    for part in range(parts):
        confidence = rng.random(rows)
        frame = pl.DataFrame(
            {
                "correct": rng.random(rows) < 0.3 + 0.7 * confidence,
                "confidence": confidence.round(3),
                "model": rng.choice(["a", "b"], rows),
            }
        )
        frame.write_parquet(folder / f"part-{part}.parquet", row_group_size=50)
    return str(folder / "part-*.parquet")


def _same(one: ab.Evaluation, two: ab.Evaluation) -> bool:
    notes = [(f.kind, f.message) for f in one.notes] == [(f.kind, f.message) for f in two.notes]
    samples = [c.overconfident for c in one.curves] == [c.overconfident for c in two.curves]
    return one.frame().equals(two.frame()) and notes and samples


def test_without_dask_one_line_says_what_to_install(tmp_path, monkeypatch):
    from abstain._foundation import dask_cluster

    monkeypatch.setattr(dask_cluster, "is_installed", lambda _: False)
    with pytest.raises(MissingInputError, match=r"pip install 'abstain\[scale\]'"):
        ab.evaluate(ab.scan_predictions(_files(tmp_path)), stream=DASK)


def test_counts_merged_in_pairs_equal_those_of_one_process(tmp_path, monkeypatch):
    """What the workers do, without a cluster."""
    from abstain.evaluation.intervals import IntervalOptions
    from abstain.evaluation.stream import cluster
    from abstain.evaluation.stream.counts import CountingOptions
    from abstain.evaluation.stream.evaluation import StreamPlan, evaluate_counts

    class Client:
        def submit(self, do, *args, **_):
            return do(*args)

        def gather(self, found):
            return found

    class Here:
        def __enter__(self):
            return Client()

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(cluster, "start_local_cluster", lambda *_, **__: Here())
    monkeypatch.setattr(cluster, "import_distributed", lambda: None)
    monkeypatch.setattr(chunks, "_MAX_ROWS", 100)
    monkeypatch.setattr(chunks, "_MIN_ROWS", 10)
    scan = ab.scan_predictions(_files(tmp_path), by="model")
    counts = cluster.count_on_cluster(scan, CountingOptions(None, None), "")
    how = IntervalOptions.from_arguments(
        "analytic", level=0.95, bootstrap=2, clustered=False, rng=0
    )
    found = evaluate_counts(scan, counts, StreamPlan(None, None, None, how))
    assert counts.n_pieces == 16
    assert _same(found, ab.evaluate(scan))


def test_one_folder_is_not_for_many_processes(tmp_path):
    with pytest.raises(InputError, match="is for one process"):
        ab.StreamOptions(engine="dask", resume=tmp_path)


def test_where_no_scheduler_answers_it_is_said(tmp_path):
    pytest.importorskip("distributed")
    options = ab.StreamOptions(engine="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="no dask scheduler answers"):
        ab.evaluate(ab.scan_predictions(_files(tmp_path)), stream=options)


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_one_process_also_when_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    scan = ab.scan_predictions(_files(tmp_path, parts=12, rows=20_000), by="model")
    evaluation = ab.evaluate(scan)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        options = ab.StreamOptions(engine="dask", scheduler=cluster.scheduler_address)
        assert _same(ab.evaluate(scan, stream=options), evaluation)
        pids = list(client.run(os.getpid).values())
        victim = Thread(target=_kill, args=(pids[0], random.Random(7).uniform(0.05, 0.5)))
        victim.start()
        assert _same(ab.evaluate(scan, stream=options), evaluation)
        victim.join()
        # Dataframes, of which the partitions stay with the workers.
        dataframe = pytest.importorskip("dask.dataframe")
        with client.as_current():
            frame = dataframe.from_pandas(pl.read_parquet(scan.paths[0]).to_pandas(), npartitions=5)
            counted = ab.evaluate(ab.scan_predictions(frame, by="model"))
        part = ab.evaluate(ab.scan_predictions(scan.paths[0], by="model"))
        assert counted.frame().equals(part.frame())
        assert pids[0] not in client.run(os.getpid).values()


#: Without a main guard: a process that is started runs all of it again.
_SCRIPT = """
print("run", flush=True)
import dask, dask.dataframe, polars, abstain as ab
frame = dask.dataframe.from_pandas(polars.read_parquet({path!r}).to_pandas(), npartitions=4)
print(ab.evaluate(frame, metrics=["augrc"]).value("augrc"))
with dask.config.set(scheduler="synchronous"):
    print(ab.evaluate(frame, metrics=["augrc"]).value("augrc"))
"""


@pytest.mark.slow
def test_a_dataframe_in_a_script_without_a_guard_starts_no_process(tmp_path):
    pytest.importorskip("distributed")
    pytest.importorskip("dask.dataframe")
    path = _files(tmp_path, parts=1).replace("*", "0")
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(path=path))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=env, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    value = ab.evaluate(path, metrics=["augrc"]).value("augrc")
    assert done.stdout.split() == ["run", *[str(value)] * 2]


def _kill(pid: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)

"""Jobs on a dask cluster: the same files, whoever dies."""

import json
import os
import time
from itertools import pairwise
from time import perf_counter

import pytest
from bench.tests.runs.job_work import work

from abstain.errors import InputError, MissingInputError
from abstain_bench.runs.jobs import Job, run_jobs
from abstain_bench.runs.jobs.engine import assign_worker_indices

distributed = pytest.importorskip("distributed")

# dask's own threads and sockets are closed a little later than its cluster.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def left(folder):
    """Return what jobs left: their files, and receipts without the time they took."""
    results = {path.name: path.read_bytes() for path in folder.glob("*.txt")}
    for path in folder.glob("*.json"):
        results[path.name] = json.loads(path.read_text()) | {"seconds": 0}
    return results


def test_a_worker_that_dies_stops_only_its_job(tmp_path):
    first = Job("first", {"do": "nap"})
    middle = [Job(f"m{i}", {"do": "nap", "i": i}, (first,)) for i in range(3)]
    killed = Job("killed", {"do": "die once"}, (first,))
    last = Job("last", {}, (*middle, killed))
    bad = Job("bad", {"do": "fail"})
    dead = Job("dead", {"do": "die"})
    looks = [Job(f"look{i}", {"do": "look", "i": i}) for i in range(2)]
    # The first two begin together, one on each worker.
    jobs = [*looks, first, *middle, killed, bad, Job("never", {}, (bad,)), last, dead]

    reports = []
    there = tmp_path / "cluster"
    outcomes = run_jobs(
        jobs, work, there, processes=2, engine="dask", on_outcome=lambda o, *_: reports.append(o)
    )
    by = {outcome.job.name: outcome for outcome in outcomes}
    assert [name for name, o in by.items() if not o.is_done] == ["bad", "never", "dead"]
    assert (there / "died").exists()
    assert by["dead"].error == "its process was killed (out of memory?)"
    assert by["bad"].error == "ValueError: no luck"
    assert "Traceback" in bad.path(there, ".log").read_text()
    # Each is over once, whatever died; whoever was on a worker that died has begun at most twice.
    over = [o.job.name for o in reports if o.status != "begun"]
    assert sorted(over) == sorted(by)
    begun = [o.job.name for o in reports if o.status == "begun"]
    assert begun.count("dead") == begun.count("killed") == 2
    assert max(map(begun.count, by)) == 2
    assert not list(there.glob(".*"))
    assert sorted(by[job.name].facts["device"] for job in looks) == ["d:0", "d:1"]

    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "died").touch()
    run_jobs([job for job in jobs if job not in (dead, *looks)], work, alone)
    assert left(alone) == {n: x for n, x in left(there).items() if not n.startswith("look")}
    kept = run_jobs([job for job in jobs if by[job.name].is_done], work, there, engine="dask")
    assert {outcome.status for outcome in kept} == {"kept"}


def note(job, folder):
    """Say when the job ran."""
    start = time.perf_counter()
    time.sleep(0.05)
    job.path(folder, ".txt").write_text(job.name)
    return {"start": start, "end": time.perf_counter()}


@pytest.mark.slow
def test_an_interruption_ends_the_cluster_at_once(tmp_path):
    pids = []

    def told(outcome, *_):
        if outcome.job.name == "two":
            while len(list(tmp_path.glob("*.here"))) < 2:
                time.sleep(0.05)
            pids.extend(int(path.read_text()) for path in tmp_path.glob("*.here"))
            raise KeyboardInterrupt

    jobs = [Job("one", {"do": "sleep"}), Job("two", {"do": "sleep", "x": 1})]
    start = perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, work, tmp_path, processes=2, engine="dask", on_outcome=told)
    # The work would sleep for a minute.
    assert perf_counter() - start < 45
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_running_cluster_is_used_and_left_as_it_was(tmp_path):
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, protocol="tcp",
        host="127.0.0.1", dashboard_address=None,
    ) as cluster:  # fmt: skip
        address = cluster.scheduler_address
        jobs = [Job(f"j{i}", {"i": i}) for i in range(5)]
        outcomes = run_jobs(jobs, note, tmp_path, engine="dask", address=address)
        assert {outcome.status for outcome in outcomes} == {"done"}
        # These workers share a process, in which jobs are done one after the other.
        times = sorted((o.facts["start"], o.facts["end"]) for o in outcomes)
        assert all(end <= start for (_, end), (start, _) in pairwise(times))
        assert len(cluster.scheduler.workers) == 2
        with pytest.raises(InputError, match="does not see the folder"):
            with_other_folder(tmp_path, address)


def with_other_folder(tmp_path, address):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abstain_bench.runs.jobs.engine.write_atomically", lambda *_: None)
        run_jobs([Job("x", {})], note, tmp_path, engine="dask", address=address)


def test_what_cannot_be_reached_is_said_in_plain_words(tmp_path, monkeypatch):
    start = perf_counter()
    with pytest.raises(InputError, match=r"no dask scheduler answers at 'tcp://127.0.0.1:9'"):
        run_jobs([Job("a", {})], work, tmp_path, engine="dask", address="tcp://127.0.0.1:9")
    assert perf_counter() - start < 20
    with pytest.raises(InputError, match="no dask scheduler answers at 'here'"):
        run_jobs([Job("a", {})], work, tmp_path, engine="dask", address="here")
    with pytest.raises(InputError, match="requires `engine` 'dask'; got 'processes'"):
        run_jobs([Job("a", {})], work, tmp_path, address="tcp://127.0.0.1:9")
    with pytest.raises(InputError, match="`engine` must be one of 'processes', 'dask'"):
        run_jobs([Job("a", {})], work, tmp_path, engine="ray")
    monkeypatch.setattr("abstain._foundation.dask_cluster.is_installed", lambda _: False)
    with pytest.raises(MissingInputError, match=r"pip install 'abstain\[scale\]'"):
        run_jobs([Job("a", {})], work, tmp_path, engine="dask")


def test_workers_are_numbered_on_each_machine_and_keep_their_numbers():
    first = assign_worker_indices(["tcp://a:1", "tcp://b:1", "tcp://a:2"], {})
    assert first == {"tcp://a:1": 0, "tcp://b:1": 0, "tcp://a:2": 1}
    # The first worker of a died; who comes in its place takes its number and so its device.
    second = assign_worker_indices(["tcp://a:2", "tcp://a:9", "tcp://b:1"], first)
    assert second == {"tcp://a:2": 1, "tcp://a:9": 0, "tcp://b:1": 0}

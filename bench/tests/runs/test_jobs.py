"""Jobs: done once, found again, and never in each other's way."""

import json
import multiprocessing
import os
import re
import time
from time import perf_counter

import numpy as np
import pytest
from bench.tests.runs.job_work import work

from abstain.errors import InputError
from abstain_bench.runs.jobs import Job, WorkerPool, run_jobs
from abstain_bench.runs.jobs.progress import JobProgress, ProgressWriter, read_job_progress
from abstain_bench.runs.jobs.record import (
    PROGRESS_SUFFIX,
    JobTable,
    Outcome,
    Receipt,
    read_receipts,
    run_job,
)

A = Job("a", {"x": 1})
B = Job("b", {"x": 1}, (A,))


def ends(found):
    return [outcome.status for outcome in found]


def test_a_job_is_known_by_what_it_asks_for():
    assert Job("a", {"x": 1, "y": 2}).key == Job("other", {"y": 2, "x": 1}).key
    assert len({A.key, B.key, Job("a", {"x": 2}).key, Job("b", {"x": 1}, (Job("a", {}),)).key}) == 4


def test_jobs_are_done_once(tmp_path):
    reports = []
    assert ends(run_jobs([A, B], work, tmp_path)) == ["done", "done"]
    outcomes = run_jobs([A, B], work, tmp_path, on_outcome=lambda o, i, n: reports.append((i, n)))
    assert ends(outcomes) == ["kept", "kept"]
    assert outcomes[1].facts == {"read": 1}
    assert reports == [(1, 2), (2, 2)]
    assert B.path(tmp_path, ".txt").read_text() == "ba"


def test_jobs_that_were_needed_and_done_before_need_not_be_requested(tmp_path):
    run_jobs([A], work, tmp_path)
    assert ends(run_jobs([B], work, tmp_path)) == ["done"]
    with pytest.raises(InputError, match="comes before one that it needs"):
        run_jobs([B, A], work, tmp_path / "new")


@pytest.mark.parametrize("content", ["", "{}", '{"key": 1}', '{"key": "x", "seconds": NaN}'])
def test_a_job_whose_receipt_was_changed_is_done_again(tmp_path, content):
    run_jobs([A], work, tmp_path)
    A.path(tmp_path, ".json").write_text(content)
    assert ends(run_jobs([A], work, tmp_path)) == ["done"]


def test_what_a_receipt_says_was_found_cannot_be_changed(tmp_path):
    run_jobs([A, B], work, tmp_path)
    path = B.path(tmp_path, ".json")
    text = path.read_text()
    path.write_text(text.replace('"read": 1', '"read": 2'))
    assert path.read_text() != text
    outcomes = run_jobs([A, B], work, tmp_path)
    assert ends(outcomes) == ["kept", "done"]
    assert outcomes[1].facts == {"read": 1}


#: As versions before November 2026 left it: no mark of the facts, and not what the job needs.
OLD = """{"name": "a", "key": "KEY", "seconds": 3, "facts": {"read": 0, "losses": [0.5, 1e-9]},
"files": {".txt": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
"spec": {"x": 1}}"""


def test_a_receipt_of_an_older_version_counts(tmp_path):
    A.path(tmp_path, ".txt").write_text("a")
    A.path(tmp_path, ".json").write_text(OLD.replace("KEY", A.key))
    (found,) = run_jobs([A], work, tmp_path)
    assert (found.status, found.seconds) == ("kept", 3.0)
    assert found.facts == {"read": 0, "losses": [0.5, 1e-9]}
    assert read_receipts(tmp_path)[A.stem].spec == {"x": 1}


def test_a_receipt_is_written_as_it_was(tmp_path):
    # The key is part of the names of files, the order of the fields of no hash: both stay.
    assert (A.key[:12], B.stem) == ("f181f1cce43a", "b-66a574dfc2ba")
    run_jobs([A, B], work, tmp_path)
    fields = json.loads(B.path(tmp_path, ".json").read_text())
    assert list(fields) == ["name", "key", "seconds", "facts", "mark", "files", "spec", "needs"]
    assert (fields["needs"], fields["facts"]) == ([A.key], {"read": 1})


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seconds", '"3"', "`seconds` of a receipt must be a number"),
        ("facts", "[1]", "`facts`"),
        ("files", '{".txt": 1}', "str"),
        ("mark", '"00"', "were changed after"),
        ("more", "1", "`more` is not a field of a receipt"),
    ],
)
def test_what_is_wrong_with_a_receipt_is_said(tmp_path, field, value, words):
    path = A.path(tmp_path, ".json")
    path.write_text(json.dumps({**json.loads(OLD), field: json.loads(value)}))
    with pytest.raises(InputError, match=re.escape(words)):
        Receipt.read(path)
    assert read_receipts(tmp_path) == {}


def test_facts_that_no_receipt_can_hold_are_a_failure(tmp_path):
    (found,) = run_jobs([A], lambda *_: {"x": float("nan")}, tmp_path)
    assert (found.status, A.path(tmp_path, ".log").is_file()) == ("failed", True)


def test_a_folder_that_is_called_like_a_job_is_nothing_of_it(tmp_path):
    A.path(tmp_path, ".old").mkdir()
    assert ends(run_jobs([A], work, tmp_path)) == ["done"]
    assert ends(run_jobs([A], work, tmp_path)) == ["kept"]


def test_a_failure_stops_only_what_needs_it(tmp_path):
    bad = Job("bad", {"do": "fail"})
    outcomes = run_jobs([bad, Job("c", {}, (bad,)), A], work, tmp_path)
    assert ends(outcomes) == ["failed", "left out", "done"]
    assert outcomes[0].error == "ValueError: no luck"
    assert "Traceback" in bad.path(tmp_path, ".log").read_text()
    assert outcomes[1].error == "it needs bad, which failed"


def test_processes_that_die_stop_only_their_job(tmp_path):
    dead, once = Job("dead", {"do": "die"}), Job("once", {"do": "die once"})
    outcomes = run_jobs([once, dead, A], work, tmp_path, processes=2)
    assert ends(outcomes) == ["done", "failed", "done"]
    assert "killed" in outcomes[1].error
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_job_that_a_death_cut_short_runs_alone(tmp_path):
    dead, other = Job("dead", {"do": "die"}), Job("other", {"x": 2})
    table = JobTable([dead, A, other], tmp_path)
    assert not table.must_run_alone(A, [dead])
    for job in (dead, A):
        table.start(job)
    for job in (dead, A):
        table.handle_process_death(job)
    assert table.must_run_alone(A, [other])
    assert table.must_run_alone(other, [A])
    assert not table.must_run_alone(A, [])
    # So the second death of the one does not take the other along.
    outcomes = run_jobs([dead, A], work, tmp_path, processes=2)
    assert (outcomes[0].status, outcomes[1].is_done) == ("failed", True)


def test_a_job_lets_others_by_while_one_that_runs_is_to_spare_it_work(tmp_path):
    first, second = (Job(name, {"x": name}, warm_up_file="ab.start") for name in "ab")
    assert first.key == Job("a", {"x": "a"}).key
    table = JobTable([first, second, A], tmp_path)
    table.start(first)
    # After the others, but not to wait where there are none.
    assert table.next_job() is A
    table.start(A)
    assert table.next_job() is second
    table.waiting.append(A)
    file = tmp_path / "ab.start"
    file.write_bytes(b"")
    assert table.next_job() is second
    table.start(second)
    table.finish(Outcome(first, "done"))
    assert file.exists()
    table.finish(Outcome(second, "failed"))
    assert not file.exists()


def test_a_job_whose_files_were_lost_or_changed_is_done_again(tmp_path):
    run_jobs([A, B], work, tmp_path)
    A.path(tmp_path, ".txt").unlink()
    B.path(tmp_path, ".txt").write_text("cut")
    assert ends(run_jobs([A, B], work, tmp_path)) == ["done", "done"]
    assert B.path(tmp_path, ".txt").read_text() == "ba"


def test_jobs_that_ask_for_the_same_leave_files_of_their_own(tmp_path):
    twin = Job("twin", {"x": 1})
    assert twin.key == A.key
    for _ in range(2):
        assert len(run_jobs([A, twin], work, tmp_path)) == 2
        assert twin.path(tmp_path, ".txt").read_text() == "twin"
        assert A.path(tmp_path, ".txt").read_text() == "a"


def test_a_job_that_begins_is_told(tmp_path):
    reports = []
    run_jobs([A], work, tmp_path, on_outcome=lambda o, i, n: reports.append((o.status, i, n)))
    assert reports == [("begun", 0, 1), ("done", 1, 1)]


def test_a_job_that_another_process_has_done_meanwhile_is_not_done_again(tmp_path):
    def never(job, folder):
        raise AssertionError

    run_jobs([A], work, tmp_path)
    assert run_job(A, never, tmp_path).status == "kept"
    A.path(tmp_path, ".txt").write_text("cut")
    assert run_job(A, never, tmp_path).status == "failed"


def test_processes_share_the_devices_and_keep_them_when_one_died(tmp_path):
    once = Job("once", {"do": "die once"})
    # After it, so that all are done by the pool that was made anew.
    looks = [Job(f"look{i}", {"do": "look", "i": i, "with": 2}, (once,)) for i in range(4)]
    outcomes = run_jobs([once, *looks], work, tmp_path, processes=2)
    assert ends(outcomes) == ["done"] * 5
    by = {outcome.facts["pid"]: outcome.facts["device"] for outcome in outcomes[1:]}
    assert sorted(by.values()) == ["d:0", "d:1"]
    alone = run_jobs([Job("look", {"do": "look"})], work, tmp_path)
    assert alone[0].facts["device"] == "d:0"


def test_a_crew_does_the_jobs_of_several_rounds(tmp_path):
    with WorkerPool(2) as crew:
        looks = [Job(f"look-{i}", {"do": "look", "with": 2, "i": i}) for i in range(2)]
        first = run_jobs(looks, work, tmp_path, processes=2, pool=crew)
        dead = Job("dead", {"do": "die"})
        more = [Job(f"more-{i}", {"do": "look", "i": i}) for i in range(2)]
        second = run_jobs(more, work, tmp_path, processes=2, pool=crew)
        assert {one.facts["pid"] for one in second} <= {one.facts["pid"] for one in first}
        # One that dies is replaced, in this round and in the next.
        outcomes = run_jobs([dead, A], work, tmp_path, processes=2, pool=crew)
        # It may have been done just before, and then it is kept.
        assert (outcomes[0].status, outcomes[1].is_done) == ("failed", True)
        (last,) = run_jobs([Job("last", {"do": "look"})], work, tmp_path, processes=2, pool=crew)
        assert last.status == "done"
    until = time.monotonic() + 10
    while multiprocessing.active_children() and time.monotonic() < until:
        time.sleep(0.02)
    assert not multiprocessing.active_children()


def test_an_interruption_ends_running_jobs_at_once(tmp_path):
    def told(outcome, *_):
        if outcome.job.name == "two":
            raise KeyboardInterrupt

    jobs = [Job("one", {"do": "sleep"}), Job("two", {"do": "sleep", "x": 1})]
    start = perf_counter()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, work, tmp_path, processes=2, on_outcome=told)
    # The work would sleep for a minute.
    assert perf_counter() - start < 30
    assert not multiprocessing.active_children()


def test_what_killed_writers_left_is_swept_once_it_is_old(tmp_path):
    old, young, other = (tmp_path / name for name in (".a.json.1f.tmp", ".b.json.2e.tmp", "c.tmp"))
    for path in (old, young, other):
        path.touch()
    os.utime(old, (time.time() - 4000,) * 2)
    run_jobs([], work, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, other.name])


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets: both of the times that are looked at."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def said_at(folder, now, job=A):
    """Return what is said of the jobs, the words being as old as they were made."""
    if (path := job.path(folder, PROGRESS_SUFFIX)).is_file():
        os.utime(path, (now, now))
    return read_job_progress(folder)


def test_a_job_says_how_far_it_is_and_how_long_the_rest_takes(tmp_path, clock):
    writer = ProgressWriter(A, tmp_path, "epoch", 12)
    writer(2.0)
    assert [(one.description, np.isnan(one.seconds_left)) for one in said_at(tmp_path, 1000)] == [
        ("epoch 3 of 12", True)
    ]
    clock[0] = 1020.0
    # It went on from two epochs, so that one of them takes ten seconds.
    writer(4.0)
    assert said_at(tmp_path, 1020) == [JobProgress("a", "epoch", 4.0, 12, 80.0)]
    clock[0] = 1030.0
    assert read_job_progress(tmp_path)[0].seconds_left == 70.0
    clock[0] = 1020.0 + 121
    assert read_job_progress(tmp_path) == []


def test_it_says_so_no_more_than_once_a_second(tmp_path, clock, monkeypatch):
    written = []
    monkeypatch.setattr(type(tmp_path), "write_text", lambda self, text, **_: written.append(text))
    writer = ProgressWriter(A, tmp_path, "epoch", 12)
    for i in range(1, 1001):
        clock[0] = 1000 + i / 100
        writer(i / 100)
    assert len(written) == 10


def test_parts_follow_each_other(tmp_path):
    writer = ProgressWriter(A, tmp_path, "part", 2, interval=0)
    results = []
    for share in (0.5, 1.0, 0.25, 1.0):
        writer.add_share(share)
        results.append(read_job_progress(tmp_path)[0])
    assert [one.done for one in results] == [0.5, 1.0, 1.25, 2.0]
    assert [one.description for one in results] == [f"part {i} of 2" for i in (1, 2, 2, 2)]


@pytest.mark.parametrize("asked", ["", "fail"])
def test_a_job_that_is_over_prints_nothing(tmp_path, asked):
    def told(job, folder):
        ProgressWriter(job, folder, "epoch", 2)(1.0)
        assert [one.name for one in read_job_progress(folder)] == ["a"]
        return work(job, folder)

    run_jobs([Job("a", {"do": asked})], told, tmp_path)
    assert not list(tmp_path.glob(f"*{PROGRESS_SUFFIX}"))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "a"}', '{"left": "x"}'])
def test_half_a_word_is_none(tmp_path, content):
    A.path(tmp_path, PROGRESS_SUFFIX).write_text(content)
    assert read_job_progress(tmp_path) == []

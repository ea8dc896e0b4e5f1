"""What each stage took: from receipts, whatever version wrote them."""

import json

import pytest

from abstain_bench.runs.costs import (
    PART_TITLES,
    REPORT,
    Cost,
    Stopwatch,
    costs_by_score,
    costs_by_stage,
    read_costs,
    write_report_costs,
)
from abstain_bench.runs.jobs import Job, run_jobs
from abstain_bench.runs.jobs.record import Receipt, read_receipts
from abstain_bench.runs.store import JOBS

#: What the jobs say; one of them as an older version left it, and one of another study.
TOOK = {
    "train-a": {"training": 5.0, "pictures": 1.0},
    "train-test-b": None,
    "validate-a": {"passes": 2.0, "evaluation": 0.5, "scores": {"msr": 0.25, "knn": 0.75}},
    "test-a": {"passes": 4.0, "scores": {"msr": 1.0}},
    "ensemble-test-a": {"scores": {"ens_msr": 0.5}, "unheard of": 3.0},
    "before-x": {"training": 1.0},
}


def work(job, folder):
    took = TOOK[job.name]
    return {} if took is None else {"took": took}


@pytest.fixture
def folder(tmp_path):
    run_jobs([Job(name, {}) for name in TOOK], work, tmp_path / JOBS)
    for path in (tmp_path / JOBS).glob("*.json"):
        fields = json.loads(path.read_text())
        path.write_text(json.dumps({**fields, "seconds": 7.0}))
    return tmp_path


def test_the_seconds_of_all_jobs_add_up(folder):
    costs = read_costs(folder)
    assert sum(one.seconds for one in costs) == pytest.approx(7.0 * 5)
    results = {(one.stage, one.part, one.score): (one.jobs, one.seconds) for one in costs}
    assert results == {
        ("train", "", ""): (1, 7.0),
        ("train", "training", ""): (1, 5.0),
        ("train", "pictures", ""): (1, 1.0),
        ("train", "other", ""): (1, 1.0),
        ("validate", "passes", ""): (1, 2.0),
        ("validate", "scores", "knn"): (1, 0.75),
        ("validate", "scores", "msr"): (1, 0.25),
        ("validate", "evaluation", ""): (1, 0.5),
        ("validate", "other", ""): (1, 3.5),
        ("test", "passes", ""): (1, 4.0),
        ("test", "scores", "ens_msr"): (1, 0.5),
        ("test", "scores", "msr"): (1, 1.0),
        ("test", "other", ""): (2, 8.5),
    }
    assert [one.stage for one in costs] == sorted(
        (one.stage for one in costs), key=("train", "validate", "test").index
    )
    assert read_costs(folder, read_receipts(folder / JOBS).values()) == costs


def test_tables_add_up_stages_and_scores(folder):
    costs = read_costs(folder)
    stages, scores = costs_by_stage(costs), costs_by_score(costs)
    assert sum(row.share for row in stages) == pytest.approx(1)
    own = next(row for row in stages if row.labels == ("validate", PART_TITLES["scores"]))
    assert (own.jobs, own.seconds) == (1, 1.0)
    assert [(row.labels, row.jobs, row.seconds) for row in scores] == [
        (("msr",), 2, 1.25),
        (("knn",), 1, 0.75),
        (("ens_msr",), 1, 0.5),
    ]


def test_the_last_report_is_a_stage(folder):
    watch = Stopwatch()
    watch.add({"ranking": 1.5, "page": 2.0})
    watch.add({"page": 1.0})
    write_report_costs(folder, watch)
    results = [cost for cost in read_costs(folder) if cost.stage == REPORT]
    assert results == [Cost(REPORT, "ranking", "", 1, 1.5), Cost(REPORT, "page", "", 1, 3.0)]
    for content in ("", "[]", '{"page": "x"}', '{"page": -1}', '{"other thing": 1}'):
        (folder / "report-costs.json").write_text(content)
        assert REPORT not in {cost.stage for cost in read_costs(folder)}


def test_a_folder_that_nobody_may_write_to_stops_no_report(tmp_path):
    write_report_costs(tmp_path / "absent", Stopwatch())
    assert not (tmp_path / "absent").exists()


def test_what_took_no_time_of_a_changed_receipt_is_nothing(tmp_path):
    took = {"training": 9.0, "scores": {}}
    one = Receipt("train-a", "k", 7.0, {"took": took}, "", {}, {}, ())
    results = {c.part: c.seconds for c in read_costs(tmp_path, [one])}
    assert results == {"training": 9.0, "other": 0.0}

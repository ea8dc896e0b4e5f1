"""What a folder of runs says on a machine with the base install: no torch, no other extra."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from bench.tests.runs.made_store import made_store
from tests.architecture.source import ROOT
from tests.architecture.test_imports import EXTRAS

from abstain.cli.main import run
from abstain_bench.runs.store import MANIFEST

#: Runs one command where no package of an extra can be imported.
BASE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {sorted(EXTRAS | {"sklearn"})}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from abstain.cli.main import main
main()
"""


def base(folder, *arguments):
    """Run a command where only the base install is, and return how it ended."""
    done = subprocess.run(
        [sys.executable, "-c", BASE, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run of a task whose images only torch can make again."""
    place = tmp_path_factory.mktemp("base")
    made_store(place / "runs", seeds=1, n=40, severities=(1,))
    manifest = json.loads((place / "runs" / MANIFEST).read_text())
    manifest["config"]["task"] = "glyphs"
    (place / "runs" / MANIFEST).write_text(json.dumps(manifest))
    return place


def test_a_report_without_torch_has_all_but_the_pictures(folder):
    few = ["--metrics", "augrc", "--studies", "iid", "--methods", "msr", "mls"]
    done = base(folder, "benchmark", "report", "runs", *few)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Wrote runs/report/benchmark.html, runs/report/pages, runs/report/tables" in done.stdout
    page = (folder / "runs" / "report" / "benchmark.html").read_text()
    assert "torch is not installed" in page
    assert pl.read_parquet(folder / "runs/report/tables/values.parquet").height


def test_status_and_export_without_torch(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    done = base(folder, "benchmark", "status", "runs")
    assert run(["benchmark", "status", "runs"]) == 0
    assert (done.returncode, done.stdout) == (0, capsys.readouterr().out)
    done = base(folder, "benchmark", "export", "runs", "all.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert pl.read_parquet(folder / "all.parquet").height


def test_the_status_of_receipts_without_torch(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    from bench.tests.runs import followed

    followed.begin(tmp_path / "runs", followed.small())
    followed.before(tmp_path / "runs", followed.small(), jobs=slice(5))
    monkeypatch.chdir(tmp_path)
    done = base(tmp_path, "benchmark", "status", "runs")
    assert run(["benchmark", "status", "runs"]) == 0
    assert (done.returncode, done.stdout) == (0, capsys.readouterr().out)
    assert "The run is incomplete" in done.stdout


def test_the_jobs_of_a_run_are_known_without_torch(tmp_path):
    pytest.importorskip("torch")
    from bench.tests.runs import followed

    config = followed.small()
    followed.begin(tmp_path / "runs", config)
    code = BASE.partition("from abstain.cli")[0] + (
        "from abstain_bench.runs.progress import specification_of\n"
        "from abstain_bench.runs.store import Store\n"
        "spec = specification_of(Store.read('runs'))\n"
        "print(*[job.key for job in spec.jobs_before_selection()], sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    keys = [job.key for job in followed.plan_of(config).jobs_before_selection()]
    assert done.stdout.split() == keys


def test_what_trains_says_what_it_needs(tmp_path):
    done = base(tmp_path, "benchmark", "run", "glyphs")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "abstain: a benchmark trains networks and needs torch: pip install torch"
    ]


def test_a_protocol_and_what_it_would_take_are_told_without_torch(tmp_path):
    """And without the images: whoever plans a run has neither yet."""
    arguments = ["cifar10", "--protocol", "fd-shifts", "--dry-run"]
    done = base(tmp_path, "benchmark", "run", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "at most 214 jobs" in done.stdout
    assert not list(tmp_path.iterdir())

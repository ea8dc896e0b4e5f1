"""Define the command `abstain benchmark`."""

from cyclopts import App

from abstain_bench.commands.benchmark.report import report
from abstain_bench.commands.benchmark.run import run
from abstain_bench.commands.benchmark.scores import add_scores, export, import_runs, remove_scores
from abstain_bench.commands.benchmark.status import status

benchmark = App(
    name="benchmark",
    help="Train classifiers and rank confidence scores under shifts.",
)
benchmark.command(run, name="run")
benchmark.command(status, name="status")
benchmark.command(report, name="report")
benchmark.command(add_scores, name="add-scores")
benchmark.command(remove_scores, name="remove-scores")
benchmark.command(export, name="export")
benchmark.command(import_runs, name="import")

"""The parser: one application, one command from each file."""

from cyclopts import App, Parameter

import abstain as ab
from abstain.cli.benchmark import benchmark
from abstain.cli.compare import compare
from abstain.cli.data import data
from abstain.cli.evaluate import evaluate
from abstain.cli.listing import listing
from abstain.cli.study import study
from abstain.cli.threshold import threshold

app = App(
    name="abstain",
    help="Measure classifiers that may refuse to answer: from a file of predictions to numbers, "
    "a picture and a report. Every command takes --traceback: after an error, where it arose.",
    version=ab.__version__,
    help_format="plaintext",
    # A file may be named "[1].csv": nothing here is JSON.
    default_parameter=Parameter(json_list=False, json_dict=False),
    # `abstain.cli.main` says that it was stopped.
    suppress_keyboard_interrupt=False,
)
app.command(evaluate, name="evaluate")
app.command(compare, name="compare")
app.command(threshold, name="threshold")
app.command(study)
app.command(benchmark)
app.command(data)
app.command(listing, name="list")

"""The parser: one application, one command from each file."""

from cyclopts import App

import abstain as ab
from abstain.cli.compare import compare
from abstain.cli.evaluate import evaluate
from abstain.cli.listing import listing

app = App(
    name="abstain",
    help="Measure classifiers that may refuse to answer: from a file of predictions to numbers, "
    "a picture and a report.",
    version=ab.__version__,
    help_format="plaintext",
)
app.command(evaluate, name="evaluate")
app.command(compare, name="compare")
app.command(listing, name="list")

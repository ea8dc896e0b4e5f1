"""The parser: one application, one command from each file, which is loaded when it is wanted."""

from importlib import import_module

from cyclopts import App, Parameter

from abstain import __version__

#: What each command is for, as it says itself: they are listed without being loaded.
COMMANDS = {
    "evaluate": "Evaluate confidence scores on files of predictions.",
    "inspect": "Say what files of predictions hold, and the command that evaluates them.",
    "compare": "Compare methods on the same samples: differences with intervals, tests, rankings.",
    "threshold": "Choose the confidence from which on to answer, with a guarantee, and check it "
    "elsewhere.",
    "cascade": "Choose who answers: a model, a larger one, a person. With a guarantee, at least "
    "cost.",
    "monitor": "Watch a rule in use: its coverage, the confidences, and the risk as labels arrive.",
    "study": "Run a study of the literature: tables, figures and a verdict.",
    "benchmark": "Run a benchmark of confidence scores: train, expose to shifts, rank, report.",
    "data": "Fetch published data sets, and list them.",
    "list": "List what there is to ask for by name.",
    "completion": "Print what makes a shell complete commands and options.",
}


def application(wanted: list[str]) -> App:
    """Return the parser with the commands among the wanted words; the others are only listed."""
    app = App(
        name="abstain",
        help="Measure classifiers that may refuse to answer: from a file of predictions to "
        "numbers, a picture and a report. Every command takes --traceback: after an error, where "
        "it arose.",
        version=__version__,
        help_format="plaintext",
        # A file may be named "[1].csv": nothing here is JSON.
        default_parameter=Parameter(json_list=False, json_dict=False),
        # `abstain.cli.main` says that it was stopped.
        suppress_keyboard_interrupt=False,
    )
    for name, said in COMMANDS.items():
        word = "listing" if name == "list" else name
        place = f"abstain.cli.{word}"
        if name in wanted:
            app.command(getattr(import_module(place), word), name=name)
        else:
            app.command(f"{place}:{word}", name=name, help=said)
    return app

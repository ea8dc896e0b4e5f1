"""`abstain study NAME`, a command for each study of the catalogue, and `abstain study --all`."""

from typing import Annotated

from cyclopts import App, Parameter

from abstain_bench.commands.study.command import NO_OUTPUT, Quick, StudyOutput, command_of
from abstain_bench.commands.study.overview import rerun
from abstain_bench.studies import STUDIES

study = App(
    name="study",
    help="Reproduce studies from the literature.",
    usage="Usage: abstain study COMMAND",
)
for _entry in STUDIES.values():
    study.command(command_of(_entry), name=_entry.name)


@study.default
def studies(
    name: Annotated[str, Parameter(show=False)] = "",
    /,
    *,
    run_all: Annotated[bool, Parameter("--all", help="Run all studies", negative=())] = False,
    quick: Quick = False,
    output: Annotated[StudyOutput, Parameter(name="*")] = NO_OUTPUT,
) -> None:
    """Reproduce studies from the literature.

    With --all, all studies run one after the other, and each writes a folder with its name to
    --out. If one fails, the others still run. After an interruption, the same command continues.
    The exit status is 1 if a study failed.
    """
    if name:
        # Subcommands handle existing names; other names raise an error with a suggestion.
        STUDIES[name]
    elif run_all:
        rerun(output, quick=quick)
    else:
        study.help_print([])

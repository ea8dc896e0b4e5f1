"""`abstain study NAME`, a command for each study of the catalogue, and `abstain study --all`."""

from typing import Annotated

from cyclopts import App, Parameter

from abstain_bench.commands.study.command import NOTHING, Quick, StudyOutput, command_of
from abstain_bench.commands.study.overview import rerun
from abstain_bench.studies import STUDIES

__all__ = ["command_of", "study"]

study = App(
    name="study",
    help="Run a study of the literature: tables, figures and a verdict.",
    usage="Usage: abstain study COMMAND",
)
for _entry in STUDIES.values():
    study.command(command_of(_entry), name=_entry.name)


@study.default
def studies(
    name: Annotated[str, Parameter(show=False)] = "",
    /,
    *,
    every: Annotated[bool, Parameter("--all", help="run every study", negative=())] = False,
    quick: Quick = False,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Run a study of the literature: tables, figures and a verdict.

    With --all every study runs, one after the other, and each leaves a folder of its name in --out.
    One that fails stops no other; the same command goes on after a kill. The exit status is 1 when
    a study failed.
    """
    if name:
        # A command takes the names there are; what is left is refused with what it may have meant.
        STUDIES[name]
    elif every:
        rerun(leave, quick=quick)
    else:
        study.help_print([])

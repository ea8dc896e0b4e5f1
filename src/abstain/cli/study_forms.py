"""`abstain study population-forms`: the reweighted form of the AURC against its definition."""

from typing import Annotated

from cyclopts import Parameter

from abstain.cli.chance import Seed
from abstain.cli.columns import Columns
from abstain.cli.study_data import ANY, USUAL, Asked, Files, read_named
from abstain.cli.study_run import NOTHING, Leave, Sizes, run_study


def population_forms(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL,
    asked: Annotated[Asked, Parameter(name="*")] = ANY,
    sizes: Sizes = (1000, 10000),
    seed: Seed = 0,
    leave: Annotated[Leave, Parameter(name="*")] = NOTHING,
) -> None:
    """Compare two forms of the AURC on many data sets, pair by pair.

    The mean of rank-weighted losses against the mean selective risk, for every file (and every
    part of --by), score and loss.
    """
    data, notes = read_named(files, columns)
    parameters = {**asked.options(), "sizes": sizes, "rng": seed}
    run_study("population-forms", leave, data or None, files=files, notes=notes, **parameters)

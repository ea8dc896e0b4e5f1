"""`abstain study estimators`: mean, spread and error of every estimator against sample size."""

from typing import Annotated

from cyclopts import Parameter

from abstain.cli.chance import Seed
from abstain.cli.columns import Columns, several
from abstain.cli.study_data import ANY, USUAL, Asked, Files, read_named
from abstain.cli.study_run import NOTHING, Leave, Sizes, run_study


def estimators(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL,
    asked: Annotated[Asked, Parameter(name="*")] = ANY,
    estimator: Annotated[
        tuple[str, ...],
        several("plugin, log, monte-carlo, trapezoid, sele, 2sele or augrc (default: all)"),
    ] = (),
    sizes: Sizes = (8, 16, 32, 64, 128, 256, 512, 1024),
    repeats: Annotated[int, Parameter(help="samples of each size")] = 1000,
    replace: Annotated[
        bool, Parameter(help="draw the rows of a file independently", negative=())
    ] = False,
    seed: Seed = 0,
    leave: Annotated[Leave, Parameter(name="*")] = NOTHING,
) -> None:
    """Measure the estimators of the AURC on many samples of each size.

    Batches are drawn from the rows of files, as in the paper, or from simulated populations whose
    truth is exact. Values are fractions.
    """
    data, notes = read_named(files, columns)
    parameters = {
        **asked.options(),
        "estimators": estimator or None,
        "sizes": sizes,
        "repeats": repeats,
        "replace": replace,
        "rng": seed,
    }
    run_study("estimators", leave, data or None, files=files, notes=notes, **parameters)

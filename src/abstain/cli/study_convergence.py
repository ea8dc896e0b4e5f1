"""`abstain study convergence`: the rate at which every estimator converges."""

from typing import Annotated

from cyclopts import Parameter

from abstain.cli.chance import Seed
from abstain.cli.columns import Columns
from abstain.cli.study_data import ANY, USUAL, Asked, Files, read_named
from abstain.cli.study_run import NOTHING, Leave, Sizes, run_study


def convergence(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL,
    asked: Annotated[Asked, Parameter(name="*")] = ANY,
    sizes: Sizes = (32, 128, 512, 2048, 8192, 32768, 131072),
    repeats: Annotated[
        int | None, Parameter(help="samples of each size (default: fewer of the large ones)")
    ] = None,
    seed: Seed = 0,
    leave: Annotated[Leave, Parameter(name="*")] = NOTHING,
) -> None:
    """Fit the rate at which the estimators converge.

    The slope of the error on logarithmic axes with its interval, beside 1/sqrt(n) and
    sqrt(ln n / n). Rows of files are drawn independently.
    """
    data, notes = read_named(files, columns)
    parameters = {**asked.options(), "sizes": sizes, "repeats": repeats, "rng": seed}
    run_study("convergence", leave, data or None, files=files, notes=notes, **parameters)

"""`abstain study NAME` of the estimators of the AURC: their error, weights and convergence."""

from typing import Annotated, Any

from cyclopts import Parameter

from abstain.cli.chance import Seed
from abstain.cli.columns import Columns, several
from abstain.cli.study.running import (
    ANY_SOURCE,
    NOTHING,
    USUAL_COLUMNS,
    Files,
    Sizes,
    SourceOptions,
    StudyOutput,
    read_named,
    run_study,
)


def estimators(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
    source: Annotated[SourceOptions, Parameter(name="*")] = ANY_SOURCE,
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
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Measure the estimators of the AURC on many samples of each size.

    Batches are drawn from the rows of files, as in the paper, or from simulated populations whose
    truth is exact. Values are fractions.
    """
    data, notes = read_named(files, columns)
    parameters = {
        **source.options(),
        "estimators": estimator or None,
        "sizes": sizes,
        "repeats": repeats,
        "replace": replace,
        "rng": seed,
    }
    run_study("estimators", leave, data or None, files=files, notes=notes, **parameters)


def weights(
    *,
    sizes: Sizes = (8, 32, 128, 1024),
    points: Annotated[int, Parameter(help="population ranks at which they are computed")] = 199,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Compute the exact bias and mean squared error of the rank weights.

    Of every estimator, at every population rank, for several sample sizes. Nothing is drawn.
    """
    run_study("weights", leave, sizes=sizes, points=points)


def convergence(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
    source: Annotated[SourceOptions, Parameter(name="*")] = ANY_SOURCE,
    sizes: Sizes = (32, 128, 512, 2048, 8192, 32768, 131072),
    repeats: Annotated[
        int | None, Parameter(help="samples of each size (default: fewer of the large ones)")
    ] = None,
    seed: Seed = 0,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Fit the rate at which the estimators converge.

    The slope of the error on logarithmic axes with its interval, beside 1/sqrt(n) and
    sqrt(ln n / n). Rows of files are drawn independently.
    """
    data, notes = read_named(files, columns)
    parameters = {**source.options(), "sizes": sizes, "repeats": repeats, "rng": seed}
    run_study("convergence", leave, data or None, files=files, notes=notes, **parameters)


def population_forms(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
    source: Annotated[SourceOptions, Parameter(name="*")] = ANY_SOURCE,
    sizes: Sizes = (1000, 10000),
    seed: Seed = 0,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Compare two forms of the AURC on many data sets, pair by pair.

    The mean of rank-weighted losses against the mean selective risk, for every file (and every
    part of --by), score and loss.
    """
    data, notes = read_named(files, columns)
    parameters = {**source.options(), "sizes": sizes, "rng": seed}
    run_study("population-forms", leave, data or None, files=files, notes=notes, **parameters)


def posterior(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
    score: Annotated[str, Parameter(help="the score (`abstain list scores`)")] = "msr",
    metric: Annotated[tuple[str, ...], several("a metric (default: aurc_plugin and augrc)")] = (),
    loss: Annotated[
        str | None, Parameter(help="what counts as wrong (`abstain list losses`)")
    ] = None,
    repeats: Annotated[int, Parameter(help="subsets of the draws of each size")] = 500,
    seed: Seed = 0,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Estimate metrics in expectation over a posterior, by the number of draws.

    From the Monte-Carlo samples of a file (logit_samples or probability_samples of an .npz, shape
    (n, S, K)), or from a simulated posterior.
    """
    data, notes = read_named(files, columns)
    parameters: dict[str, Any] = {"score": score, "loss": loss, "repeats": repeats, "rng": seed}
    parameters |= {"metrics": metric} if metric else {}
    run_study("posterior", leave, data or None, files=files, notes=notes, **parameters)

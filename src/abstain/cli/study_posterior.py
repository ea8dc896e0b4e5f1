"""`abstain study posterior`: the expectation of metrics over a posterior."""

from typing import Annotated, Any

from cyclopts import Parameter

from abstain.cli.chance import Seed
from abstain.cli.columns import Columns, several
from abstain.cli.study_data import USUAL, Files, read_named
from abstain.cli.study_run import NOTHING, Leave, run_study


def posterior(
    files: Files = (),
    /,
    *,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL,
    score: Annotated[str, Parameter(help="the score (`abstain list scores`)")] = "msr",
    metric: Annotated[tuple[str, ...], several("a metric (default: aurc_plugin and augrc)")] = (),
    loss: Annotated[
        str | None, Parameter(help="what counts as wrong (`abstain list losses`)")
    ] = None,
    repeats: Annotated[int, Parameter(help="subsets of the draws of each size")] = 500,
    seed: Seed = 0,
    leave: Annotated[Leave, Parameter(name="*")] = NOTHING,
) -> None:
    """Estimate metrics in expectation over a posterior, by the number of draws.

    From the Monte-Carlo samples of a file (logit_samples or probability_samples of an .npz, shape
    (n, S, K)), or from a simulated posterior.
    """
    data, notes = read_named(files, columns)
    parameters: dict[str, Any] = {"score": score, "loss": loss, "repeats": repeats, "rng": seed}
    parameters |= {"metrics": metric} if metric else {}
    run_study("posterior", leave, data or None, files=files, notes=notes, **parameters)

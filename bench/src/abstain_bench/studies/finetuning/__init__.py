"""Does fine-tuning for the area under the risk-coverage curve lower it? The study in the catalogue.

All of it but this file needs torch, and is imported when the study is run.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from abstain._foundation import checks
from abstain_bench.studies._study import StudyEntry, StudyResult, require_package, timed

if TYPE_CHECKING:
    from abstain_bench.runs.jobs import OnOutcome


@timed
def finetune(
    config: str | Path | None = None,
    *,
    data: Literal["digits", "digits8", "cifar10", "cifar100"] | None = None,
    folder: str | Path | None = None,
    model: str | None = None,
    seeds: int | None = None,
    device: str = "cpu",
    jobs: int = 1,
    out: str | Path | None = None,
    on_outcome: "OnOutcome | None" = None,
) -> StudyResult:
    """Fine-tune for AURC and AUGRC, and compare with more cross-entropy on held-out data.

    Answers: does training for an area under the risk-coverage curve lower that area on held-out
    data, compared with as much more training by cross-entropy? With `out`, every job is kept, so
    that the same command goes on after a kill. If jobs fail, the others are still reported, and
    the command exits with status 1.

    Parameters
    ----------
    config : str or Path, optional
        A TOML file; by default the one that comes with the package for the data set.
    data : {"digits", "digits8", "cifar10", "cifar100"}, optional
        The data set; by default that of the configuration, or "digits".
    folder : str or Path, optional
        Folder with the files of CIFAR, binary version.
    model : str, optional
        Network (``abstain list models``); by default that of the configuration.
    seeds : int, optional
        Number of seeds; by default those of the configuration.
    device : str, default="cpu"
        Where torch computes: "cpu", "cuda", "cuda:1".
    jobs : int, default=1
        How many jobs run at a time, each a process with one thread.
    out : str or Path, optional
        The folder in which jobs are kept, to go on from after a kill; by default they are thrown
        away at the end.
    on_outcome : callable, optional
        Told of each job when it begins (its status is "begun") and when it is over.

    Returns
    -------
    StudyResult
        Tables "results" (one value a model), "objectives" (table 1 of the paper),
        "against_reference", "differences", "tuning" and "jobs"; figures of the differences from
        the reference.

    Raises
    ------
    InputError
        The configuration is wrong, the data are not there, the device does not exist, or too
        many jobs failed to compare anything.

    Notes
    -----
    With several `jobs`, the call in a script must stand below ``if __name__ == "__main__":``.
    Settings are chosen on validation data alone: the test data are looked at once, by the models
    that are compared. All models of one seed start from the same pretrained one and take the same
    number of steps.

    References
    ----------
    .. [1] Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361

    Examples
    --------
    >>> from abstain_bench.studies import STUDIES
    >>> found = STUDIES["finetune"].run(seeds=5, jobs=2, out="runs")  # doctest: +SKIP
    """
    require_package("torch")
    from abstain_bench.studies.finetuning.experiment import changed, read_experiment, shipped
    from abstain_bench.studies.finetuning.run import run_experiment

    processes = checks.positive_int(jobs, "jobs")
    path = Path(config) if config is not None else shipped(data or "digits")
    asked = changed(read_experiment(path), data=data, folder=folder, model=model, seeds=seeds)
    found = run_experiment(
        path,
        asked,
        device=device,
        processes=processes,
        out=None if out is None else Path(out),
        on_outcome=on_outcome,
    )
    return FINETUNING.result(**found)


def configuration(config: Path | None = None, *, data: str | None = None, **_others: object) -> str:
    """Return the text of the configuration that would be run, whatever else is asked for."""
    require_package("torch")
    from abstain_bench.studies.finetuning.experiment import configuration_text

    return configuration_text(config, data)


#: The study in the catalogue.
FINETUNING: Final = StudyEntry(
    name="finetune",
    title="Fine-tuning for the area under the risk-coverage curve",
    question=(
        "Does fine-tuning a trained classifier with rank-weighted losses lower its AURC and AUGRC "
        "on held-out data, compared with more cross-entropy?"
    ),
    source="Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361",
    run=finetune,
    quick={"data": "digits8", "seeds": 1},
    job_folders=("predictions.npz", "jobs"),
    configuration=configuration,
)

"""The study that fine-tunes classifiers for the area under the risk-coverage curve.

The other modules of this package need torch. They are imported when the study runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from abstain._foundation import checks
from abstain_bench.studies._area_estimators import GLOSSARY
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

    The study answers the question: does training for an area under the risk-coverage curve lower
    that area on held-out data, compared with the same number of training steps with cross-entropy?
    With `out`, every finished job is stored, and the same command continues after an interruption.
    If jobs fail, the others are still reported, and the command exits with status 1.

    Parameters
    ----------
    config : str or Path, optional
        A TOML file; by default the configuration in the package for the data set.
    data : {"digits", "digits8", "cifar10", "cifar100"}, optional
        Data set; by default that of the configuration, or "digits".
    folder : str or Path, optional
        Folder with the files of CIFAR, binary version.
    model : str, optional
        Network (``abstain list models``); by default that of the configuration.
    seeds : int, optional
        Number of seeds; by default those of the configuration.
    device : str, default="cpu"
        Device of torch: "cpu", "cuda", "cuda:1".
    jobs : int, default=1
        Number of parallel jobs, each in a process with one thread.
    out : str or Path, optional
        Folder in which finished jobs are stored, to continue after an interruption; by default they
        are deleted at the end.
    on_outcome : callable, optional
        Called for each job when it begins (with status "begun") and when it ends.

    Returns
    -------
    StudyResult
        Tables "results" (one metric of one model per row), "objectives" (table 1 of the paper),
        "against_reference", "differences", "tuning" and "jobs"; figures of the differences from
        the reference.

    Raises
    ------
    InputError
        If the configuration is invalid, the data or the device is missing, or too many jobs failed
        for a comparison.

    Notes
    -----
    With several `jobs`, the call in a script must be below ``if __name__ == "__main__":``. Settings
    are selected on validation data. Only the final models are evaluated on the test data. All
    models of one seed start from the same pretrained model and take the same number of steps.

    References
    ----------
    .. [1] Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    objectives
        Test data, with the softmax response as confidence: mean ± standard deviation over the
        seeds. Areas are multiplied by 1000, as in the literature.
    against_reference
        Objective minus reference on the same test samples, mean over the seeds, times 1000. The
        interval for new samples determines the result. "Of these seeds only": the interval for new
        samples and new seeds contains 0.
    differences
        All differences from the reference, as fractions.
    tuning
        Settings evaluated on validation data, mean over the tuning seeds.
    table-1
        AURC on the test data times 100, as in the paper, which does not state the loss. This run
        has the AURC of the 0/1 error and of the cross-entropy (CE). The networks of the paper were
        trained with another recipe.
    jobs
        Jobs of this run. Kept: finished in an earlier run.
    results
        One metric of one model per row.

    .. rubric:: Glossary

    Classifier term, ranking term
        AUGRC is the sum of two terms: its value for a perfect ranking, which depends on the error
        rate alone, and the increase due to the actual ranking.
    AURC of CE
        AURC with the cross-entropy (CE) of each sample in nats as the loss, instead of the 0/1
        error.
    New samples
        Confidence interval for other test samples, given the trained models of this run.
    New samples and seeds
        Confidence interval for other test samples and other seeds.

    Examples
    --------
    >>> from abstain_bench.studies import STUDIES
    >>> result = STUDIES["finetune"].run(seeds=5, jobs=2, out="runs")  # doctest: +SKIP
    """
    require_package("torch")
    from abstain_bench.studies.finetuning.experiment import (
        override_experiment,
        packaged_configuration,
        read_experiment,
    )
    from abstain_bench.studies.finetuning.jobs import run_experiment

    n_processes = checks.positive_int(jobs, "jobs")
    path = Path(config) if config is not None else packaged_configuration(data or "digits")
    experiment = override_experiment(
        read_experiment(path), data=data, folder=folder, model=model, seeds=seeds
    )
    fields = run_experiment(
        path,
        experiment,
        device=device,
        n_processes=n_processes,
        out=None if out is None else Path(out),
        on_outcome=on_outcome,
    )
    return FINETUNING.result(**fields)


def configuration(
    config: Path | None = None, *, data: str | None = None, **_ignored: object
) -> str:
    """Return the text of the configuration. Other arguments of the command have no effect."""
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
    terms={term: GLOSSARY[term] for term in ("AURC", "AUGRC", "SELE")},
)

"""Fine-tune classifiers to minimize the area under the risk-coverage curve.

The modules of this package require torch. The modules are imported when the function of the study
is called.
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
    """Fine-tune classifiers to minimize AURC or AUGRC, and compare them on test data.

    The study answers the question: does training for an area under the risk-coverage curve lower
    this area on held-out data, compared with the same number of training steps with cross-entropy?
    If `out` is set, the result of each job is stored, and the same command resumes an interrupted
    run. If jobs fail, the results of the other jobs are reported, and the command exits with status
    1.

    Parameters
    ----------
    config : str or Path, optional
        TOML file with the configuration. The default is the packaged configuration for the data
        set.
    data : {"digits", "digits8", "cifar10", "cifar100"}, optional
        Name of the data set. The default is the data set of `config`, or "digits" if `config` is
        not set.
    folder : str or Path, optional
        Folder with the binary version of CIFAR.
    model : str, optional
        Name of the network (``abstain list models``). The default is the network in the
        configuration.
    seeds : int, optional
        Number of seeds. The default is the seeds in the configuration.
    device : str, default="cpu"
        Device of torch, for example "cpu", "cuda" or "cuda:1".
    jobs : int, default=1
        Number of parallel processes. Each process runs one job at a time in a single thread.
    out : str or Path, optional
        Folder in which the results of jobs are stored. An interrupted run is resumed from the
        stored results. By default, the results of jobs are deleted when the study is finished.
    on_outcome : callable, optional
        Function that is called at the beginning (with status "begun") and at the end of each job.

    Returns
    -------
    StudyResult
        Tables "results" (one row for each model and metric), "objectives" (as table 1 of the
        paper), "against_reference", "differences", "tuning" and "jobs"; figures of the differences
        from the reference.

    Raises
    ------
    InputError
        If the configuration is invalid, if the data or the device is missing, or if too many jobs
        failed for a comparison.

    Notes
    -----
    If `jobs` is above 1, a script must call the function below ``if __name__ == "__main__":``.
    Settings are selected on validation data. The test data are used only to evaluate the final
    models. For each seed, all models start from the same pretrained network and are trained for the
    same number of steps.

    References
    ----------
    .. [1] Zhou et al. (2025), table 1, https://arxiv.org/abs/2410.15361

    .. rubric:: Captions

    objectives
        Mean ± standard deviation over the seeds on the test data. The confidence is the softmax
        response. Areas are multiplied by 1000, as in the literature.
    against_reference
        Metric of the objective minus metric of the reference on the same test samples. The
        difference is averaged over the seeds and multiplied by 1000. The interval for new samples
        determines the result. The result is "of these seeds only" if the interval for new samples
        and seeds contains 0.
    differences
        Differences from the reference as fractions.
    tuning
        Metric of each setting on validation data, averaged over the tuning seeds.
    table-1
        AURC on the test data, multiplied by 100 as in the paper. The paper does not state the loss,
        so the table contains the AURC of the 0/1 error and the AURC of the cross-entropy (CE). The
        networks of the paper were trained with another recipe.
    jobs
        Jobs of this run. Jobs with status "kept" finished in an earlier run.
    results
        Each row contains a metric of a model.

    .. rubric:: Glossary

    Classifier term, ranking term
        The AUGRC is the sum of both terms. The classifier term is the AUGRC of a perfect ranking
        and depends only on the error rate. The ranking term is the increase by the actual ranking.
    AURC of CE
        AURC with the cross-entropy (CE) in nats as the loss, instead of the 0/1 error.
    New samples
        Confidence interval for new test samples and the trained models of this run.
    New samples and seeds
        Confidence interval for new test samples and new seeds.

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
    """Return the text of the configuration file; other arguments are ignored."""
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

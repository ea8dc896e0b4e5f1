"""`abstain study finetune`: fine-tuning for the area under the risk-coverage curve."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from abstain.cli.progress import JobLines, interruptible, progress
from abstain.cli.study.running import NOTHING, StudyOutput, place_of, show_study
from abstain.studies import STUDIES

if TYPE_CHECKING:
    from abstain.studies import StudyResult

Data = Literal["digits", "digits8", "cifar10", "cifar100"]


@dataclass(frozen=True, kw_only=True)
class Processes:
    """What the jobs run on."""

    device: Annotated[str, Parameter(help="where torch computes: cpu, cuda, cuda:1")] = "cpu"
    jobs: Annotated[int, Parameter(help="jobs at a time, each a process with one thread")] = 1


_ONE_PROCESS = Processes()


def finetune(
    config: Annotated[
        Path | None, Parameter(help="TOML file (default: the one for the data set)")
    ] = None,
    /,
    *,
    data: Annotated[Data | None, Parameter(help="the data set, digits by default")] = None,
    folder: Annotated[
        Path | None, Parameter(help="folder with the files of CIFAR, binary version")
    ] = None,
    model: Annotated[
        str | None, Parameter(help="small-conv, vgg16-bn, preresnet-110, wrn-28-10 and so on")
    ] = None,
    seeds: Annotated[int | None, Parameter(help="how many seeds")] = None,
    machine: Annotated[Processes, Parameter(name="*")] = _ONE_PROCESS,
    print_config: Annotated[
        bool,
        Parameter(help="print the configuration, to save and edit, and do nothing", negative=()),
    ] = False,
    leave: Annotated[StudyOutput, Parameter(name="*")] = NOTHING,
) -> None:
    """Fine-tune for AURC and AUGRC, and compare with more cross-entropy on held-out data.

    Says which job is done. With --out every job is kept: the same command goes on after a kill.
    The exit status is 1 when jobs failed; what the others found is still written.
    """
    if print_config:
        sys.stdout.write(_configuration(config, data))
        return
    to = place_of(leave, [config])
    with interruptible(_after(leave)), progress() as bar:
        found = STUDIES["finetune"].run(
            config,
            data=data,
            folder=folder,
            model=model,
            seeds=seeds,
            device=machine.device,
            jobs=machine.jobs,
            out=leave.out,
            on_outcome=JobLines(bar),
        )
    show_study(found, leave, to, *_jobs(leave))
    _exit_where_jobs_failed(found)


def _exit_where_jobs_failed(found: "StudyResult") -> None:
    """Let a script notice that not all was done, after everything has been written."""
    if any(row["status"] in {"failed", "left out"} for row in found.rows("jobs")):
        sys.stdout.flush()
        raise SystemExit(1)


def _configuration(config: Path | None, data: str | None) -> str:
    """Return the text of the configuration that would be run."""
    from abstain._foundation import reading
    from abstain._foundation.extras import has
    from abstain.errors import InputError, MissingInputError

    if not has("torch"):
        msg = "this study needs torch; pip install 'abstain[benchmark]'"
        raise MissingInputError(msg)
    from abstain.studies.finetuning.experiment import read_experiment, shipped

    path = config or shipped(data or "digits")
    # Whatever is no configuration is said before it is printed.
    name = read_experiment(path).data.name
    if config is not None and data not in {None, name}:
        msg = f"`--print-config` prints a file as it is, and {path.name} is about {name!r}"
        raise InputError(msg)
    text = reading.text(path)
    return text.replace(f'name = "{name}"', f'name = "{data or name}"', 1)


def _after(leave: StudyOutput) -> str:
    """Return what is left after Ctrl-C."""
    goes_on = "the same command goes on from here."
    return goes_on if leave.out is not None else f"nothing is kept; with --out {goes_on}"


def _jobs(leave: StudyOutput) -> list[Path]:
    return [] if leave.out is None else [leave.out / "predictions.npz", leave.out / "jobs"]

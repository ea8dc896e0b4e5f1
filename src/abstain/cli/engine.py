"""Options of `evaluate` for data in memory, for data in batches, and for clusters."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import abstain as ab
from abstain.cli.console import exit_on_interrupt, format_duration, show_status
from abstain.cli.options import Columns
from abstain.cli.predictions import reading_options
from abstain.errors import InputError

if TYPE_CHECKING:
    from abstain.evaluation import Evaluation
    from abstain.evaluation.stream import StreamProgress
    from abstain.tables import PredictionScan


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Options of `evaluate` for data in memory, for data in batches, and for clusters."""

    engine: Annotated[
        Literal["memory", "stream", "dask"],
        Parameter(
            help="memory: all samples in memory, each file separately; stream: files larger than "
            "memory as one data set; dask: the same on a cluster"
        ),
    ] = "memory"
    resume: Annotated[
        Path | None,
        Parameter(
            help="Folder for intermediate results, from which an interrupted stream continues"
        ),
    ] = None
    skip_bad: Annotated[
        bool,
        Parameter(help="Skip invalid rows and files of a stream, and count them", negative=()),
    ] = False
    memory: Annotated[
        float | None,
        Parameter(help="Memory in GiB for graded losses or weights of a stream (default: 4)"),
    ] = None
    scheduler: Annotated[
        str | None,
        Parameter(help="Address of a dask scheduler (default: two processes on this machine)"),
    ] = None

    @property
    def in_memory(self) -> bool:
        """Whether all samples are read into memory."""
        return self.engine == "memory"

    def check(self) -> None:
        """Raise an error if options have no effect with this engine."""
        unused = []
        if self.resume is not None and self.engine != "stream":
            unused.append("--resume")
        if self.memory is not None and self.engine != "stream":
            unused.append("--memory")
        if self.skip_bad and self.engine == "memory":
            unused.append("--skip-bad")
        if self.scheduler and self.engine != "dask":
            unused.append("--scheduler")
        if unused:
            verb = "has" if len(unused) == 1 else "have"
            required = "dask" if unused == ["--scheduler"] else "stream"
            raise InputError(
                f"{', '.join(unused)} {verb} no effect with --engine {self.engine}; add --engine "
                f"{required}, or drop {'it' if len(unused) == 1 else 'them'}"
            )

    def scan(self, files: tuple[Path, ...], columns: Columns) -> "PredictionScan":
        """Prepare to read the files of one set of predictions in batches."""
        options = reading_options(columns)
        if options.pop("long"):
            raise InputError(
                "--long requires --engine memory, because the rows of a sample may be anywhere"
            )
        sources = [str(file) for file in files]
        return ab.scan_predictions(sources, **options, skip_bad=self.skip_bad)

    def evaluate(self, scan: "PredictionScan", arguments: dict[str, Any]) -> "Evaluation":
        """Evaluate the files, and print the progress."""
        with exit_on_interrupt(self._resume_hint), show_status("Counting") as show_progress:
            options = ab.StreamOptions(
                resume=self.resume,
                **self._memory_option,
                on_progress=lambda progress: show_progress(format_progress(progress)),
                engine="dask" if self.engine == "dask" else "local",
                scheduler=self.scheduler or "",
            )
            return ab.evaluate(scan, stream=options, **arguments)

    @property
    def _memory_option(self) -> dict[str, int]:
        """Return the value of --memory in bytes, if the option was passed."""
        if self.memory is None:
            return {}
        if not 0 < self.memory < math.inf:
            raise InputError(f"--memory must be a number of GiB above 0; got {self.memory}")
        return {"memory": max(int(self.memory * 2**30), 1)}

    @property
    def _resume_hint(self) -> str:
        if self.resume is None:
            return "no intermediate results were saved; pass --resume FOLDER to save them"
        return f"intermediate results are in {self.resume}; run the same command to continue"


def format_progress(progress: "StreamProgress") -> str:
    """Format the progress of a stream."""
    return (
        f"{progress.n_rows:,} rows, {progress.share:.0%}, {progress.rate:,.0f} rows per second, "
        f"about {format_duration(progress.remaining_seconds)} left"
    )

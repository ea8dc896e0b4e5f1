"""Where `evaluate` reads and counts: in memory, in batches, or by the processes of a cluster."""

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
    """Where `evaluate` reads and counts."""

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
        """Whether all samples are read at once; refuses options without effect."""
        idle = ["--resume"] if self.resume is not None and self.engine != "stream" else []
        idle += ["--memory"] if self.memory is not None and self.engine != "stream" else []
        idle += ["--skip-bad"] if self.skip_bad and self.engine == "memory" else []
        idle += ["--scheduler"] if self.scheduler and self.engine != "dask" else []
        if idle:
            other = "dask" if idle == ["--scheduler"] else "stream"
            msg = f"{', '.join(idle)}: without effect with --engine {self.engine}; take --engine "
            raise InputError(f"{msg}{other}, or drop {'it' if len(idle) == 1 else 'them'}")
        return self.engine == "memory"

    def scan(self, files: tuple[Path, ...], columns: Columns) -> "PredictionScan":
        """Find the parts of one set of predictions."""
        given, options = [str(file) for file in files], reading_options(columns)
        if options.pop("long"):
            raise InputError(
                "--long brings rows together that may lie far apart: take --engine memory"
            )
        return ab.scan_predictions(given, **options, skip_bad=self.skip_bad)

    def evaluate(self, scan: "PredictionScan", asked: dict[str, Any]) -> "Evaluation":
        """Evaluate them, and say how far it is."""
        with exit_on_interrupt(self._resume_hint), show_status("Counting") as told:
            options = ab.StreamOptions(
                resume=self.resume,
                **self._memory_option,
                on_progress=lambda progress: told(format_progress(progress)),
                engine="dask" if self.engine == "dask" else "local",
                scheduler=self.scheduler or "",
            )
            return ab.evaluate(scan, stream=options, **asked)

    @property
    def _memory_option(self) -> dict[str, int]:
        """Return the memory as bytes, where it is asked for."""
        if self.memory is None:
            return {}
        if not 0 < self.memory < math.inf:
            raise InputError(f"--memory must be a number of GiB above 0; got {self.memory}")
        return {"memory": max(int(self.memory * 2**30), 1)}

    @property
    def _resume_hint(self) -> str:
        if self.resume is None:
            return "nothing is left; with --resume FOLDER it would go on where it was"
        return f"what is counted is kept in {self.resume}; the same command goes on from there"


def format_progress(progress: "StreamProgress") -> str:
    """Say how far a stream is."""
    return (
        f"{progress.n_rows:,} rows, {progress.share:.0%}, {progress.rate:,.0f} rows a second, "
        f"about {format_duration(progress.remaining_seconds)} left"
    )

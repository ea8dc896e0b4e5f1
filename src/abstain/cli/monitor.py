"""`abstain monitor`: predictions as they come, an alarm when a rule breaks its promise."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import flag
from abstain.cli.monitor_options import Kept
from abstain.cli.options import USUAL_COLUMNS, Columns
from abstain.cli.out import REPORT, place
from abstain.cli.predictions import read_scored
from abstain.cli.stop_signals import StopSignals
from abstain.cli.threshold import read_rule
from abstain.errors import FileFormatError, InputError
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain.monitoring import Monitor


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What is watched, and how surely."""

    calibration: Annotated[Path | None, Parameter(help="Calibration predictions of the rule")] = (
        None
    )
    delta: Annotated[
        float | None, Parameter(help="Probability of any false alarm, ever [default: 0.05]")
    ] = None
    max_risk: Annotated[
        float | None, Parameter(help="Largest acceptable risk [default: the target of the rule]")
    ] = None
    coverage: Annotated[
        tuple[float, float] | None,
        Parameter(
            help="Bounds of the acceptable coverage [default: from the calibration samples]",
            negative=(),
        ),
    ] = None
    scale: Annotated[
        Scale | None, Parameter(help="Scale of the confidences, for a rule in log-odds")
    ] = None
    label_share: Annotated[
        float | None,
        Parameter(help="Share of the accepted predictions for which labels are requested"),
    ] = None
    patience: Annotated[
        int | None,
        Parameter(help="Number of predictions after which a label is given up [default: 10000]"),
    ] = None
    remember: Annotated[
        int | None, Parameter(help="Number of remembered prediction ids [default: 1000000]")
    ] = None
    seed: Annotated[int | None, Parameter(help="Seed of all random numbers [default: 0]")] = None

    def given(self) -> dict[str, Any]:
        """Return what was said, but for the calibration data."""
        names = (n for n in self.__dataclass_fields__ if n != "calibration")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


_PROMISE, _KEPT = Promise(), Kept()


def monitor(
    rule: Annotated[Path, Parameter(help="Rule written by `abstain threshold --save`")],
    /,
    *,
    promise: Annotated[Promise, Parameter(name="*")] = _PROMISE,
    kept: Annotated[Kept, Parameter(name="*")] = _KEPT,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
) -> None:
    """Monitor the coverage, confidences and risk of a decision rule in production.

    The command reads JSON lines: predictions ({"id": .., "confidence": ..}) and labels ({"id":
    .., "correct": ..}) in any order. It prints each alarm once, as a line that begins with ALARM.
    The exit status is 3 while an alarm is active, and 2 after an error or if no line could be
    read. After Ctrl-C and SIGTERM, the command first processes the lines that have arrived. The
    remaining options describe the calibration file.
    """
    from abstain.cli.session import Session

    _refuse_idle(promise, kept)
    to = place(kept.out, [REPORT], [rule, promise.calibration])
    begun = _begun(rule, promise, kept, columns)
    with StopSignals() as stop:
        session = Session(begun, kept, to, stop)
        session.run()
    status = session.exit_status()
    if status:
        sys.stdout.flush()
        raise SystemExit(status)


def _refuse_idle(promise: Promise, kept: Kept) -> None:
    """Refuse options that have no effect without others."""
    needs = (
        (kept.reset, "reset", kept.state, "state"),
        (kept.once, "once", kept.watch, "watch"),
        (promise.label_share is not None, "label_share", kept.ask, "ask"),
    )
    for given, name, other, its in needs:
        if given and other is None:
            raise InputError(f"{flag(name)} has no effect without {flag(its)}; add it")


def _begun(rule: Path, promise: Promise, kept: Kept, columns: Columns) -> "Monitor":
    """Return the monitor of the state, or a new one."""
    from abstain.monitoring.starting import check_matches_state

    decision = read_rule(rule)
    if decision.parts:
        raise InputError(
            f"{rule.name} holds several rules; keep each in a file (`ab.save(ab.load("
            f"{rule.name!r}).part(NAME), ...)`), watch it on the lines of its group with a state "
            "of its own, and share --delta among them"
        )
    data: Any = None
    if promise.calibration is not None:
        data = read_scored(promise.calibration, columns, decision.score).only()
    if kept.state is None or not kept.state.exists():
        begun = ab.monitoring.start(decision, calibration=data, **promise.given())
        return begun.save(kept.state) if kept.state is not None else begun
    found = ab.load(kept.state)
    if not isinstance(found, ab.monitoring.Monitor):
        raise FileFormatError(
            f"{kept.state.name} holds no state of a monitor but a {type(found).__name__}"
        )
    check_matches_state(found, decision, data, **promise.given())
    return found.reset() if kept.reset else found

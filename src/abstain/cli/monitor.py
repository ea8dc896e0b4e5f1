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

    calibration: Annotated[
        Path | None, Parameter(help="the predictions that the rule was chosen on")
    ] = None
    delta: Annotated[
        float | None, Parameter(help="chance of any false alarm, ever [default: 0.05]")
    ] = None
    max_risk: Annotated[
        float | None, Parameter(help="what the risk is held to [default: the target of the rule]")
    ] = None
    coverage: Annotated[
        tuple[float, float] | None,
        Parameter(
            help="low and high of the coverage [default: by the calibration samples]", negative=()
        ),
    ] = None
    scale: Annotated[
        Scale | None, Parameter(help="what confidences are, for a rule in log-odds")
    ] = None
    label_share: Annotated[
        float | None, Parameter(help="share of the answers whose labels to ask for")
    ] = None
    patience: Annotated[
        int | None, Parameter(help="predictions until a label is given up [default: 10000]")
    ] = None
    remember: Annotated[
        int | None, Parameter(help="predictions that are known by id [default: 1000000]")
    ] = None
    seed: Annotated[int | None, Parameter(help="of everything drawn [default: 0]")] = None

    def given(self) -> dict[str, Any]:
        """Return what was said, but for the calibration data."""
        names = (n for n in self.__dataclass_fields__ if n != "calibration")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


_PROMISE, _KEPT = Promise(), Kept()


def monitor(
    rule: Annotated[Path, Parameter(help="the rule, as `abstain threshold --save` leaves it")],
    /,
    *,
    promise: Annotated[Promise, Parameter(name="*")] = _PROMISE,
    kept: Annotated[Kept, Parameter(name="*")] = _KEPT,
    columns: Annotated[Columns, Parameter(name="*")] = USUAL_COLUMNS,
) -> None:
    """Watch a rule in use: its coverage, the confidences, and the risk as labels arrive.

    Reads JSON lines: predictions ({"id": .., "confidence": ..}) and labels ({"id": ..,
    "correct": ..}) in any order. An alarm is a line that begins with ALARM, printed
    once; while one stands the exit status is 3. It is 2 after an error, or if no line
    could be read. Ctrl-C and SIGTERM end the command after the lines that have arrived.
    The other options are about the calibration file.
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
    from abstain.monitoring.starting import refuse_other

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
        return begun.keep(kept.state) if kept.state is not None else begun
    found = ab.load(kept.state)
    if not isinstance(found, ab.monitoring.Monitor):
        raise FileFormatError(
            f"{kept.state.name} holds no state of a monitor but a {type(found).__name__}"
        )
    refuse_other(found, decision, data, **promise.given())
    return found.reset() if kept.reset else found

"""`abstain monitor`: monitor a decision rule on a stream of predictions, and print alarms."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import abstain as ab
from abstain.cli.command_line import to_flag
from abstain.cli.monitor_options import InputOutputOptions
from abstain.cli.options import COLUMNS_GROUP, DEFAULT_COLUMNS, Columns
from abstain.cli.output_folder import REPORT, check_folder
from abstain.cli.predictions import read_with_score
from abstain.cli.stop_signals import StopSignals
from abstain.cli.threshold import read_rule
from abstain.errors import FileFormatError, InputError
from abstain.typing import Scale

if TYPE_CHECKING:
    from abstain.monitoring import Monitor


@dataclass(frozen=True, kw_only=True)
class MonitorOptions:
    """Options for the statistical tests of the monitor."""

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

    def passed_options(self) -> dict[str, Any]:
        """Return the options that were passed, except the calibration data."""
        names = (name for name in self.__dataclass_fields__ if name != "calibration")
        options = {name: getattr(self, name) for name in names}
        return {name: value for name, value in options.items() if value is not None}


_TESTS, _INPUT_OUTPUT = MonitorOptions(), InputOutputOptions()


def monitor(
    rule: Annotated[Path, Parameter(help="Rule written by `abstain threshold --save`")],
    /,
    *,
    tests: Annotated[MonitorOptions, Parameter(name="*")] = _TESTS,
    input_output: Annotated[InputOutputOptions, Parameter(name="*")] = _INPUT_OUTPUT,
    columns: Annotated[Columns, COLUMNS_GROUP] = DEFAULT_COLUMNS,
) -> None:
    """Monitor the coverage, confidences and risk of a decision rule in production.

    The command reads JSON lines: predictions ({"id": .., "confidence": ..}) and labels ({"id": ..,
    "correct": ..}) in any order. The command prints each alarm once, as a line that begins with
    ALARM. The exit status is 3 while an alarm is active. The exit status is 2 after an error, or if
    no line could be read. After Ctrl-C or SIGTERM, the command processes all lines that have
    arrived, and then stops. All other options describe the calibration file.
    """
    from abstain.cli.session import Session

    _check_options(tests, input_output)
    output = check_folder(input_output.out, [REPORT], [rule, tests.calibration])
    initial_monitor = _start_or_load(rule, tests, input_output, columns)
    with StopSignals() as stop:
        session = Session(initial_monitor, input_output, output, stop)
        session.run()
    status = session.exit_status()
    if status:
        sys.stdout.flush()
        raise SystemExit(status)


def _check_options(tests: MonitorOptions, input_output: InputOutputOptions) -> None:
    """Raise an error for options that require another option."""
    required_options = (
        ("reset", input_output.reset, "state", input_output.state),
        ("once", input_output.once, "watch", input_output.watch),
        ("label_share", tests.label_share is not None, "ask", input_output.ask),
    )
    for name, is_passed, required_name, required_value in required_options:
        if is_passed and required_value is None:
            raise InputError(
                f"{to_flag(name)} has no effect without {to_flag(required_name)}; add "
                f"{to_flag(required_name)}, or drop {to_flag(name)}"
            )


def _start_or_load(
    rule_path: Path, tests: MonitorOptions, input_output: InputOutputOptions, columns: Columns
) -> "Monitor":
    """Load the monitor from its state file, or create a new monitor."""
    from abstain.monitoring.starting import check_matches_state

    rule = read_rule(rule_path)
    if rule.parts:
        raise InputError(
            f"{rule_path.name} contains several rules; save each of them in a file (`ab.save("
            f"ab.load({rule_path.name!r}).part(NAME), ...)`), monitor it on the lines of its group "
            "with a separate state, and divide --delta among them"
        )
    calibration: Any = None
    if tests.calibration is not None:
        calibration = read_with_score(tests.calibration, columns, rule.score).only()
    state = input_output.state
    if state is None or not state.exists():
        monitor = ab.monitoring.start(rule, calibration=calibration, **tests.passed_options())
        return monitor if state is None else monitor.save(state)
    saved_monitor = ab.load(state)
    if not isinstance(saved_monitor, ab.monitoring.Monitor):
        raise FileFormatError(
            f"{state.name} contains a {type(saved_monitor).__name__}, not the state of a monitor"
        )
    check_matches_state(saved_monitor, rule, calibration, **tests.passed_options())
    return saved_monitor.reset() if input_output.reset else saved_monitor

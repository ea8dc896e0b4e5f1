"""Store measurements in benchmarks/cases.json."""

import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from benchmarks.cases.entry import BenchmarkCase
from benchmarks.measuring.machine import commit, machine, versions
from benchmarks.measuring.rounds import Measurement

TABLE: Final = Path(__file__).with_name("cases.json")


@dataclass(frozen=True)
class CaseResult:
    """The measurements of one case, with date, machine and versions."""

    variants: Mapping[str, Measurement]
    date: str
    machine: str
    versions: Mapping[str, str]
    commit: str = ""
    #: Load average of the minute before the measurement.
    load: float = 0.0
    #: Seconds that the measurement took.
    duration: float = 0.0

    @classmethod
    def now(cls, variants: Mapping[str, Measurement], load: float, duration: float) -> "CaseResult":
        """Add the current date, machine, versions and commit to measurements."""
        date = time.strftime("%Y-%m-%d %H:%M")
        return cls(
            variants, date, machine(), versions(), commit(), round(load, 2), round(duration, 1)
        )


@dataclass
class Results:
    """Stored results of all cases.

    The file is written after each case, so that a run can be resumed.
    """

    path: Path
    cases: dict[str, CaseResult] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read the results of a file. If the file is missing, return no results."""
        if not path.exists():
            return cls(path)
        stored = json.loads(path.read_text("utf-8"))
        return cls(path, {name: _from_json(case) for name, case in stored["cases"].items()})

    def add(self, case: BenchmarkCase, result: CaseResult) -> None:
        """Add the result of a case. Variants that were not measured again keep their result."""
        previous = self.cases.get(case.name)
        if previous is not None:
            keys = {variant.key for variant in (case.reference, *case.variants)}
            existing = {key: value for key, value in previous.variants.items() if key in keys}
            duration = result.duration
            if existing.keys() - result.variants:
                duration += previous.duration
            variants = existing | result.variants
            result = replace(result, variants=variants, duration=round(duration, 1))
        self.cases[case.name] = result
        self.write()

    def write(self) -> None:
        """Write the file atomically."""
        stored = {"format": 2, "cases": {name: _to_json(case) for name, case in self.cases.items()}}
        temporary = self.path.with_suffix(f".{os.getpid()}.part")
        temporary.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
        temporary.replace(self.path)

    def missing_variants(self, case: BenchmarkCase) -> list[str]:
        """Return the keys of the variants of a case that have no result or failed."""
        stored = self.cases[case.name].variants if case.name in self.cases else {}
        return [
            variant.key
            for variant in case.variants
            if variant.key not in stored or stored[variant.key].reason.startswith("failed")
        ]


def _to_json(result: CaseResult) -> dict[str, Any]:
    variants = {key: _measurement_to_json(value) for key, value in result.variants.items()}
    return {**vars(result), "variants": variants}


def _measurement_to_json(measurement: Measurement) -> dict[str, Any]:
    # JSON has no NaN, so unknown values are omitted.
    values = {name: _round(value) for name, value in vars(measurement).items()}
    return {k: v for k, v in values.items() if v not in (None, "", {}) and v == v}


def _round(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _round(v) for k, v in value.items()}
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.5g}")
    return value


def _from_json(stored: Mapping[str, Any]) -> CaseResult:
    names = {field.name for field in fields(Measurement)}
    variants = {
        key: Measurement(**{k: v for k, v in values.items() if k in names})
        for key, values in stored["variants"].items()
    }
    return CaseResult(**{**stored, "variants": variants})

"""What was measured, as it is stored: benchmarks/cases.json."""

import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from benchmarks.cases.entry import Race
from benchmarks.measuring.machine import commit, machine, versions
from benchmarks.measuring.rounds import Found

TABLE: Final = Path(__file__).with_name("cases.json")


@dataclass(frozen=True)
class Measured:
    """What was found of one race, and where."""

    contenders: Mapping[str, Found]
    when: str
    machine: str
    versions: Mapping[str, str]
    commit: str = ""
    #: Mean number of waiting processes of the minute before, of every processor.
    load: float = 0.0
    #: How long it took to measure.
    took: float = 0.0

    @classmethod
    def now(cls, contenders: Mapping[str, Found], load: float, took: float) -> "Measured":
        """Say that it was found here and now."""
        when = time.strftime("%Y-%m-%d %H:%M")
        return cls(
            contenders, when, machine(), versions(), commit(), round(load, 2), round(took, 1)
        )


@dataclass
class Results:
    """What is stored, written again after each race, so that a stopped run is taken up again."""

    path: Path
    races: dict[str, Measured] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Results":
        """Read what is there; nothing where there is no file."""
        if not path.exists():
            return cls(path)
        stored = json.loads(path.read_text("utf-8"))
        return cls(path, {name: _measured(one) for name, one in stored["races"].items()})

    def add(self, race: Race, measured: Measured) -> None:
        """Keep what was found of a race, beside the contenders of it that were not measured now."""
        known = self.races.get(race.name)
        kept = {contender.key for contender in (race.reference, *race.contenders)}
        before = {} if known is None else {k: v for k, v in known.contenders.items() if k in kept}
        took = measured.took + (
            known.took if known and before.keys() - measured.contenders else 0.0
        )
        now = {"contenders": before | measured.contenders, "took": round(took, 1)}
        self.races[race.name] = Measured(**{**vars(measured), **now})
        self.write()

    def write(self) -> None:
        """Write all, whole or not at all."""
        stored = {"format": 1, "races": {name: _plain(one) for name, one in self.races.items()}}
        part = self.path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")
        part.replace(self.path)

    def lacking(self, race: Race) -> list[str]:
        """Return the contenders of a race that are not there, or failed."""
        known = self.races.get(race.name)
        contenders = {} if known is None else known.contenders
        return [
            contender.key
            for contender in race.contenders
            if contender.key not in contenders
            or contenders[contender.key].reason.startswith("failed")
        ]


def _plain(one: Measured) -> dict[str, Any]:
    contenders = {key: _found_plain(found) for key, found in one.contenders.items()}
    return {**vars(one), "contenders": contenders}


def _found_plain(found: Found) -> dict[str, Any]:
    # NaN is no JSON; what is not known is left out.
    given = {name: _short(value) for name, value in vars(found).items()}
    return {k: v for k, v in given.items() if v not in (None, "", {}) and v == v}


def _short(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.5g}")
    return {k: _short(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _measured(stored: Mapping[str, Any]) -> Measured:
    known = {one.name for one in fields(Found)}
    contenders = {
        key: Found(**{k: v for k, v in found.items() if k in known})
        for key, found in stored["contenders"].items()
    }
    return Measured(**{**stored, "contenders": contenders})

"""Starting: imports, help, version; and what an install takes on the disk."""

import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.cases.entry import Call, Contender, Race, Section, Sizes, Target
from benchmarks.measuring.processes import Command, abstain, python

SECTION = Section(
    "starting",
    "Starting",
    "A process each, in the time that `python -c 'import numpy'` takes.",
)


def _code(text: str) -> Contender:
    return Contender(f"python -c '{text}'", lambda _: python("-c", text))


def _metric() -> Contender:
    text = "import abstain as ab; ab.augrc([0.9, 0.1], [0, 1])"
    return Contender(f"python -c '{text}'", lambda _: python("-c", text))


def races(sizes: Sizes) -> Iterator[Race]:
    """Yield the races of this section."""
    del sizes
    half = (Target(0.5, "seconds"),)
    imported = Contender(
        "python -c 'import abstain'",
        lambda _: python("-c", "import abstain"),
        targets=(Target(0.35, "beyond"),),
    )
    everything = Contender(
        "python -c 'from abstain import *'",
        lambda _: python("-c", "from abstain import *"),
        targets=(Target(0.35, "beyond"),),
    )
    yield Race(
        "starting",
        SECTION.name,
        _warmed,
        _code("import numpy"),
        (
            imported,
            everything,
            _metric(),
            Contender("abstain --help", lambda _: abstain("--help"), targets=half),
            Contender("abstain --version", lambda _: abstain("--version"), targets=half),
            Contender("abstain evaluate --help", lambda _: abstain("evaluate", "--help")),
            Contender("abstain list metrics", lambda _: abstain("list", "metrics")),
        ),
        seconds=12.0,
        rounds=3,
        quick=True,
    )
    yield Race(
        "install size",
        SECTION.name,
        lambda *_: None,
        _code("import numpy"),
        (
            Contender(
                "pip install .", _installed(()), targets=(Target(450, "on disk, MB"),), rounds=1
            ),
            Contender("pip install '.[fast]'", _installed(("fast",)), rounds=1),
        ),
        "The files of every package that it asks for, as they lie on this machine's disk, without "
        "bytecode.",
        seconds=0.0,
        rounds=1,
    )


def _warmed(folder: Path, share: float) -> None:
    del folder, share
    abstain("list", "metrics")()


def _installed(extras: tuple[str, ...]):
    def start(_: object) -> Call:
        size = sum(sizes_of("abstain", extras).values()) / 1e6
        return Command(python("-c", "pass").argv, lambda: {"on disk, MB": size})

    return start


def sizes_of(package: str, extras: tuple[str, ...] = ()) -> Mapping[str, int]:
    """Return the bytes of a package and of all that it asks for, by name."""
    found: dict[str, int] = {}
    waiting = [(package, extras)]
    while waiting:
        name, asked = waiting.pop()
        plain = re.sub(r"[-_.]+", "-", name).lower()
        if plain in found and not asked:
            continue
        there = importlib.metadata.distribution(name)
        found[plain] = _bytes(there)
        waiting += [one for one in _requirements(there, asked) if one[0] not in found]
    return found


def _bytes(there: importlib.metadata.Distribution) -> int:
    paths = (Path(str(file.locate())) for file in there.files or ())
    return sum(p.stat().st_size for p in paths if p.suffix != ".pyc" and p.is_file())


def _requirements(
    there: importlib.metadata.Distribution, extras: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    from packaging.requirements import Requirement

    for line in there.requires or ():
        one = Requirement(line)
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        cases = [{"extra": extra} for extra in (*extras, "")]
        if any(one.marker is None or one.marker.evaluate(case) for case in cases):
            yield name, tuple(one.extras)

"""Cases for the start of Python and of the command, and for the size of an installation."""

import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.cases.entry import BenchmarkCase, Call, Section, Sizes, Target, Variant
from benchmarks.measuring.processes import Command, abstain, python

SECTION = Section(
    "starting",
    "Starting",
    "Each variant is a process. The reference is `python -c 'import numpy'`.",
)


def _python(text: str) -> Variant:
    return Variant(f"python -c '{text}'", lambda _: python("-c", text))


def _metric() -> Variant:
    text = "import abstain as ab; ab.augrc([0.9, 0.1], [0, 1])"
    return Variant(f"python -c '{text}'", lambda _: python("-c", text))


def cases(sizes: Sizes) -> Iterator[BenchmarkCase]:
    """Yield the cases of this section."""
    del sizes
    half_second = (Target(0.5, "seconds"),)
    imported = Variant(
        "python -c 'import abstain'",
        lambda _: python("-c", "import abstain"),
        targets=(Target(0.35, "beyond"),),
    )
    everything = Variant(
        "python -c 'from abstain import *'",
        lambda _: python("-c", "from abstain import *"),
        targets=(Target(0.35, "beyond"),),
    )
    yield BenchmarkCase(
        "starting",
        SECTION.name,
        _warm_up,
        _python("import numpy"),
        (
            imported,
            everything,
            _metric(),
            Variant("abstain --help", lambda _: abstain("--help"), targets=half_second),
            Variant("abstain --version", lambda _: abstain("--version"), targets=half_second),
            Variant("abstain evaluate --help", lambda _: abstain("evaluate", "--help")),
            Variant("abstain list metrics", lambda _: abstain("list", "metrics")),
        ),
        seconds=12.0,
        rounds=3,
        is_quick=True,
    )
    yield BenchmarkCase(
        "install size",
        SECTION.name,
        lambda *_: None,
        _python("import numpy"),
        (
            Variant(
                "pip install .", _install_size(()), targets=(Target(450, "on disk, MB"),), rounds=1
            ),
            Variant("pip install '.[fast]'", _install_size(("fast",)), rounds=1),
        ),
        "The sum of the file sizes of the package and its dependencies, without bytecode.",
        seconds=0.0,
        rounds=1,
    )


def _warm_up(folder: Path, share: float) -> None:
    del folder, share
    abstain("list", "metrics")()


def _install_size(extras: tuple[str, ...]):
    def start(_: object) -> Call:
        size = sum(sizes_of("abstain", extras).values()) / 1e6
        return Command(python("-c", "pass").argv, lambda: {"on disk, MB": size})

    return start


def sizes_of(package: str, extras: tuple[str, ...] = ()) -> Mapping[str, int]:
    """Return the sizes in bytes of a package and of its dependencies, by name."""
    sizes: dict[str, int] = {}
    pending = [(package, extras)]
    while pending:
        name, extras_of_name = pending.pop()
        normalized = re.sub(r"[-_.]+", "-", name).lower()
        if normalized in sizes and not extras_of_name:
            continue
        distribution = importlib.metadata.distribution(name)
        sizes[normalized] = _bytes(distribution)
        requirements = _requirements(distribution, extras_of_name)
        pending += [pair for pair in requirements if pair[0] not in sizes]
    return sizes


def _bytes(distribution: importlib.metadata.Distribution) -> int:
    paths = (Path(str(file.locate())) for file in distribution.files or ())
    return sum(p.stat().st_size for p in paths if p.suffix != ".pyc" and p.is_file())


def _requirements(
    distribution: importlib.metadata.Distribution, extras: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    from packaging.requirements import Requirement

    for line in distribution.requires or ():
        requirement = Requirement(line)
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        environments = [{"extra": extra} for extra in (*extras, "")]
        marker = requirement.marker
        if marker is None or any(marker.evaluate(environment) for environment in environments):
            yield name, tuple(requirement.extras)

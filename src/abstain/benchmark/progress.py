"""How far a benchmark is, from the files of its folder; needs no torch, and no run to be over."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from abstain._foundation.reading import last_line
from abstain.benchmark._followed import ENSEMBLE, Followed, Followers, Receipts
from abstain.benchmark.methods import METHODS
from abstain.benchmark.selection import Chosen, choose
from abstain.benchmark.store import JOBS, MANIFEST, Kept, Store
from abstain.errors import FileFormatError

__all__ = ["ArmProgress", "Failure", "Progress", "progress_of"]


@dataclass(frozen=True)
class ArmProgress:
    """What is done of one arm.

    Attributes
    ----------
    arm : str
        Its name; "ensemble" for what the networks of all seeds make together.
    networks, trained, validated, tested : int
        How many there are to be, and how many of them are that far. Of ensembles, which nobody
        trains, `trained` says how many have all their networks validated.
    to_test : int
        How many are tested, as far as settings can be chosen now.
    """

    arm: str
    networks: int
    trained: int
    validated: int
    tested: int
    to_test: int


@dataclass(frozen=True)
class Failure:
    """A job that failed.

    Attributes
    ----------
    name : str
        Of the job.
    log : Path
        With the traceback.
    error : str
        The last line of the log.
    """

    name: str
    log: Path
    error: str


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a benchmark is.

    Attributes
    ----------
    store : Store
        The folder.
    arms : tuple of ArmProgress
        In the order of the configuration, ensembles last.
    imported : mapping from str to int
        By arm, how many runs were imported.
    chosen : tuple of Chosen
        By metric and method, from the networks that are validated so far.
    failed : tuple of Failure
        Jobs that failed and were not done since.
    begun : tuple of str
        Trainings of which a part is kept.
    seconds : float
        That all jobs that are done took.
    size : int
        Bytes of the folder.
    """

    store: Store
    arms: tuple[ArmProgress, ...]
    imported: Mapping[str, int] = field(default_factory=dict)
    chosen: tuple[Chosen, ...] = ()
    failed: tuple[Failure, ...] = ()
    begun: tuple[str, ...] = ()
    seconds: float = 0.0
    size: int = 0

    @property
    def validated(self) -> bool:
        """Whether every network is validated, so that choices are final."""
        return all(arm.validated == arm.networks for arm in self.arms)

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self.validated and all(arm.tested == arm.to_test for arm in self.arms)


def progress_of(folder: str | Path) -> Progress:
    """Say how far a benchmark is.

    Parameters
    ----------
    folder : str or Path
        The folder of the runs.

    Returns
    -------
    Progress
        What is done, what failed, what is chosen, and what is left.

    Raises
    ------
    InputError
        There is no such folder, or no manifest in it.
    FileFormatError
        The manifest is damaged.

    Examples
    --------
    >>> from abstain.benchmark.progress import progress_of
    >>> progress_of("runs").over  # doctest: +SKIP
    True
    """
    store = Store.read(folder)
    jobs = store.folder / JOBS
    receipts = Receipts.read(jobs)
    everything: list[Followed] = []
    if "arms" in store.config:
        keys = [exposure.key for exposure in store.exposures]
        try:
            found = Followers(store.config, keys, receipts)
            everything = [*found.networks, *found.ensembles]
        except (AttributeError, KeyError, TypeError) as error:
            msg = f"the configuration in {str(store.folder / MANIFEST)!r} is damaged: {error!r}"
            raise FileFormatError(msg) from None
    # Runs that were imported are done.
    kept = [one for one in store.kept if "imported" in one.run.facts]
    imported = Counter(one.run.arm for one in kept)
    kept += [one for followed in everything for one in _kept(followed)]
    chosen = choose(kept, store.config["metrics"]) if kept else ()
    arms = dict.fromkeys(followed.runs[0].arm for followed in everything)
    return Progress(
        store,
        tuple(_summed(arm, everything, chosen) for arm in arms),
        dict(imported),
        chosen,
        tuple(_failures(jobs, receipts)),
        tuple(sorted(path.stem.rpartition("-")[0] for path in jobs.glob("*.part"))),
        sum(float(one["seconds"]) for one in receipts.all),
        _size(store.folder),
    )


def _kept(followed: Followed) -> list[Kept]:
    """Return what choices are made from."""
    if followed.validated is None:
        return []
    values = followed.validated["facts"].get("validated", {})
    return [Kept(run, validated=values) for run in followed.runs]


def _summed(arm: str, everything: Sequence[Followed], chosen: Sequence[Chosen]) -> ArmProgress:
    own = [followed for followed in everything if followed.runs[0].arm == arm]
    wanted = _wanted(everything, chosen)
    to_test = [followed for followed in own if _place(followed) in wanted]
    return ArmProgress(
        arm,
        len(own),
        sum(followed.trained is not None for followed in own),
        sum(followed.validated is not None for followed in own),
        sum(followed.tested is not None for followed in to_test),
        len(to_test),
    )


def _wanted(everything: Sequence[Followed], chosen: Sequence[Chosen]) -> set[tuple[str, str]]:
    """Return the settings that are tested: those chosen, and the networks of ensembles chosen."""
    wanted = {(one.arm, one.setting) for one in chosen}
    together = {setting for arm, setting in wanted if arm == ENSEMBLE}
    members = {METHODS[one.method].objective for one in chosen if one.arm == ENSEMBLE}
    return wanted | {
        _place(followed)
        for followed in everything
        if followed.runs[0].setting in together and followed.kind in members
    }


def _place(followed: Followed) -> tuple[str, str]:
    return followed.runs[0].arm, followed.runs[0].setting


def _failures(jobs: Path, receipts: Receipts) -> Iterator[Failure]:
    done = {f"{one['name']}-{one['key'][:12]}" for one in receipts.all}
    for log in sorted(jobs.glob("*.log")):
        if log.stem not in done:
            yield Failure(log.stem.rpartition("-")[0], log, last_line(log))


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A run that goes on moves its files.
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size

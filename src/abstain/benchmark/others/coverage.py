"""Whether the scores of others cover all that a comparison with the methods of a folder needs."""

from collections.abc import Collection, Mapping

from abstain.benchmark.store import VALIDATION, Run, Store
from abstain.errors import InputError


def covered_runs(
    store: Store, cells: Collection[tuple[str, str]], source: str
) -> tuple[tuple[Run, ...], list[str]]:
    """Return the runs that are scored in full, in the order of the folder, and what is to say.

    Refused where exposures of a run, seeds of a setting, or the validation rows that a choice among
    settings needs are missing. `cells` are the run and exposure of all rows.
    """
    by_run: dict[str, set[str]] = {}
    for run, exposure in cells:
        by_run.setdefault(run, set()).add(exposure)
    tested = {run.name: run for run in store.tested}
    notes = _untested(by_run, tested, source)
    runs = tuple(run for run in store.tested if run.name in by_run)
    if not runs:
        msg = f"{source} scores no run that was tested; the runs that were: {_listed(list(tested))}"
        raise InputError(msg)
    for one in runs:
        _refuse_part(store, one, by_run[one.name], source)
    _refuse_lacking_seeds(store, runs, source)
    return runs, notes + _validation(runs, by_run, source)


def _untested(by_run: Mapping[str, set[str]], tested: Mapping[str, Run], source: str) -> list[str]:
    """Refuse tests that never were; leave out validation rows that can choose nothing."""
    others = [name for name in by_run if name not in tested]
    for name in others:
        if surplus := sorted(by_run[name] - {VALIDATION}):
            msg = (
                f"{source}: the run {name!r} was not tested, since no method chose its setting; "
                f"got rows of its exposure {surplus[0]!r}. Leave its rows out"
            )
            raise InputError(msg)
    if not others:
        return []
    return [
        "not used, as these runs were not tested and cannot be chosen: the validation rows of "
        + _listed(others)
    ]


def _refuse_part(store: Store, run: Run, there: set[str], source: str) -> None:
    lacking = [one.key for one in store.exposures if one.key not in there]
    if lacking:
        msg = (
            f"{source}: all exposures of a run must be scored, so that every table can show the "
            f"method; of the run {run.name!r} these are missing: {_listed(lacking)}"
        )
        raise InputError(msg)


def _refuse_lacking_seeds(store: Store, runs: tuple[Run, ...], source: str) -> None:
    places = {(run.arm, run.setting) for run in runs}
    there = {run.name for run in runs}
    lacking = [
        run.name
        for run in store.tested
        if (run.arm, run.setting) in places and run.name not in there
    ]
    if lacking:
        msg = (
            f"{source}: all seeds of a setting must be scored, as methods are compared over the "
            f"same seeds; missing: {_listed(lacking)}"
        )
        raise InputError(msg)


def _validation(runs: tuple[Run, ...], by_run: Mapping[str, set[str]], source: str) -> list[str]:
    lacking = [run.name for run in runs if VALIDATION not in by_run[run.name]]
    if not lacking:
        return []
    places = dict.fromkeys((run.arm, run.setting) for run in runs)
    if len(places) > 1:
        msg = (
            f"{source}: it scores {len(places)} settings ({_listed(_labels(places))}), and among "
            "them only validation data may choose; add the rows of the exposure 'validation' of "
            f"{_listed(lacking)}, or keep the rows of one setting"
        )
        raise InputError(msg)
    if len(lacking) < len(runs):
        msg = (
            f"{source}: the exposure 'validation' must be scored for all runs or for none; "
            f"missing: {_listed(lacking)}"
        )
        raise InputError(msg)
    note = (
        "there are no rows of the exposure 'validation': what needs them (calibration errors, "
        "thresholds) cannot be told of this method"
    )
    return [note]


def _labels(places: Collection[tuple[str, str]]) -> list[str]:
    return [f"{arm} {setting}".strip() for arm, setting in places]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")

"""What networks say of a study, read once and kept no longer than other studies need it."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from abstain.benchmark.protocol import Study, gathered
from abstain.benchmark.runs import VALIDATION, Run, RunScores
from abstain.benchmark.store import Store
from abstain.errors import FileFormatError, InputError

__all__ = ["Place", "Reading"]

#: Where networks are found, but for the seed: the arm and the setting.
Place = tuple[str, str]


class Reading:
    """The scores of a store, by arm, setting and seed.

    Parameters
    ----------
    store : Store
        Where they are.
    studies : sequence of Study
        Those that will be asked about, in this order.
    """

    def __init__(self, store: Store, studies: Sequence[Study]) -> None:
        self.store = store
        self._runs = {(run.arm, run.setting, run.seed): run for run in store.tested}
        self._asked = Counter(key for study in studies for key in study.exposures)
        self._read: dict[tuple[str, str], RunScores] = {}

    def run(self, place: Place, seed: int) -> Run | None:
        """Return the run of an arm, setting and seed; None where it was not tested."""
        return self._runs.get((*place, seed))

    def parts(self, study: Study, run: Run) -> list[RunScores]:
        """Return what a run says of each exposure of a study."""
        return [self._scores(run, key) for key in study.exposures]

    def validation(self, run: Run) -> RunScores | None:
        """Return what a run says of the validation pictures; None where that was not kept."""
        try:
            return self.store.scores(run, VALIDATION)
        except InputError:
            return None

    def study(self, study: Study, runs: Iterable[Run]) -> dict[str, RunScores]:
        """Return what runs say of a study, by their names: of the same pictures all.

        Raises
        ------
        FileFormatError
            Two runs were not tested on the same pictures.
        """
        found: dict[str, RunScores] = {}
        for run in runs:
            own = found[run.name] = gathered(study, self.parts(study, run))
            first_name, first = next(iter(found.items()))
            same = np.array_equal(own.labels, first.labels)
            if not same or not np.array_equal(own.places, first.places):
                msg = (
                    f"the runs {first_name!r} and {run.name!r} must have been tested on the same "
                    f"pictures of {study.name!r}, in one order; their labels or places differ"
                )
                raise FileFormatError(msg)
        return found

    def over(self, study: Study) -> None:
        """Forget what no later study needs."""
        self._asked.subtract(study.exposures)
        self._read = {place: own for place, own in self._read.items() if self._asked[place[1]] > 0}

    def _scores(self, run: Run, key: str) -> RunScores:
        place = (run.name, key)
        if place not in self._read:
            self._read[place] = self.store.scores(run, key)
        return self._read[place]

"""Folders that the code of FD-Shifts wrote, and what it says of them: facts to be compared with.

Random features of four classes (150 training images, width 8) went through a linear layer, in five
passes with a fifth of them dropped. Commit c4467ae of github.com/IML-DKFZ/fd-shifts wrote the files
(its `ConfidMonitor`) and computed the confidences and metrics (its `Analysis`), with torch 2.13 and
NumPy 2. Where it stops at an open-set folder, at temperatures and at scores of features, those were
left out.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

FACTS = Path(__file__).with_name("fd_shifts_facts")
CLASSES = 4
#: What each of its data sets is.
EXPOSURES = {
    "confidnet": ("validation", "iid", "new-class:new"),
    "dg": ("validation", "iid", "new-class:new"),
    "devries": ("validation", "iid", "corruption", "new-class:new"),
    "confidnet_openset": ("validation", "iid"),
}
HELD_OUT = 3


@dataclass(frozen=True)
class Told:
    """What its code says: confidences by score, of all rows, and metrics by study and score."""

    confidence: dict
    values: dict
    temperature: float
    clipped_temperature: float
    correct: np.ndarray


def written(name, path):
    """Write the folder as it was, and return it."""
    folder = path / name / "test_results"
    folder.mkdir(parents=True)
    files = {}
    with np.load(FACTS / f"{name}.npz") as facts:
        for key in facts.files:
            if key.startswith("folder/"):
                _, file, array = key.split("/")
                files.setdefault(file, {})[array] = facts[key]
    for file, arrays in files.items():
        np.savez_compressed(folder / file, **arrays)
    return folder


@cache
def told(name):
    with np.load(FACTS / f"{name}.npz") as facts:
        values = {
            (str(study), str(score), str(metric)): float(facts["values"][i, j, k])
            for i, study in enumerate(facts["studies"])
            for j, score in enumerate(facts["asked"])
            for k, metric in enumerate(facts["metrics"])
        }
        return Told(
            dict(zip(facts["scores"].tolist(), facts["confidence"], strict=True)),
            values,
            *map(float, facts["temperatures"]),
            facts["correct"],
        )

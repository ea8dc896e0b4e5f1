"""The loop that trains: a recipe, seeded variations of the pictures, checkpoints to resume from.

Needs torch: ``pip install 'abstain[benchmark]'``.
"""

from abstain.benchmark.recipe import PRECISIONS as PRECISIONS
from abstain.benchmark.recipe import Recipe as Recipe
from abstain.benchmark.training.inputs import Inputs as Inputs
from abstain.benchmark.training.loop import Saving as Saving
from abstain.benchmark.training.loop import logits_of as logits_of
from abstain.benchmark.training.loop import train as train
from abstain.benchmark.training.precision import Machine as Machine
from abstain.benchmark.training.variations import Augmentation as Augmentation
from abstain.benchmark.training.variations import CropFlip as CropFlip
from abstain.benchmark.training.variations import Distortion as Distortion
from abstain.benchmark.training.variations import Variation as Variation

__all__ = [
    "PRECISIONS",
    "Augmentation",
    "CropFlip",
    "Distortion",
    "Inputs",
    "Machine",
    "Recipe",
    "Saving",
    "Variation",
    "logits_of",
    "train",
]

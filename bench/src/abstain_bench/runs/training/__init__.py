"""The loop that trains: a recipe, seeded variations of the images, checkpoints to resume from.

Needs torch.
"""

from abstain_bench.runs.recipe import PRECISIONS as PRECISIONS
from abstain_bench.runs.recipe import Recipe as Recipe
from abstain_bench.runs.training.inputs import Inputs as Inputs
from abstain_bench.runs.training.loop import Saving as Saving
from abstain_bench.runs.training.loop import logits_of as logits_of
from abstain_bench.runs.training.loop import train as train
from abstain_bench.runs.training.precision import Machine as Machine
from abstain_bench.runs.training.variations import Augmentation as Augmentation
from abstain_bench.runs.training.variations import CropFlip as CropFlip
from abstain_bench.runs.training.variations import Distortion as Distortion
from abstain_bench.runs.training.variations import Variation as Variation

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

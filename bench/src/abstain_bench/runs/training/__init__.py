"""Preprocess and augment images, and train networks with checkpoints.

This package requires torch.
"""

from abstain_bench.runs.recipe import PRECISIONS as PRECISIONS
from abstain_bench.runs.recipe import Recipe as Recipe
from abstain_bench.runs.training.inputs import Augmentation as Augmentation
from abstain_bench.runs.training.inputs import CropFlip as CropFlip
from abstain_bench.runs.training.inputs import Distortion as Distortion
from abstain_bench.runs.training.inputs import Preprocessing as Preprocessing
from abstain_bench.runs.training.inputs import Variation as Variation
from abstain_bench.runs.training.loop import Checkpointing as Checkpointing
from abstain_bench.runs.training.loop import Machine as Machine
from abstain_bench.runs.training.loop import compute_logits as compute_logits
from abstain_bench.runs.training.loop import train as train

"""Images with labels: what there is, where it comes from, and how it is split.

The digits need no download; CIFAR is read from a local folder in the official binary version.
"""

from abstain.benchmark.data.embedded import LETTERS as LETTERS
from abstain.benchmark.data.embedded import LOOK_ALIKES as LOOK_ALIKES
from abstain.benchmark.data.embedded import Typeface as Typeface
from abstain.benchmark.data.embedded import digits as digits
from abstain.benchmark.data.embedded import digits8 as digits8
from abstain.benchmark.data.embedded import glyph_families as glyph_families
from abstain.benchmark.data.embedded import glyphs as glyphs
from abstain.benchmark.data.embedded import textures as textures
from abstain.benchmark.data.entry import DataSet as DataSet
from abstain.benchmark.data.exposures import KINDS as KINDS
from abstain.benchmark.data.exposures import Exposure as Exposure
from abstain.benchmark.data.images import Images as Images
from abstain.benchmark.data.images import Splits as Splits
from abstain.benchmark.data.images import split as split
from abstain.benchmark.data.published.catalogue import DATASETS as DATASETS
from abstain.benchmark.data.published.cifar import read_cifar10 as read_cifar10
from abstain.benchmark.data.published.cifar import read_cifar100 as read_cifar100

__all__ = [
    "DATASETS",
    "KINDS",
    "LETTERS",
    "LOOK_ALIKES",
    "DataSet",
    "Exposure",
    "Images",
    "Splits",
    "Typeface",
    "digits",
    "digits8",
    "glyph_families",
    "glyphs",
    "read_cifar10",
    "read_cifar100",
    "split",
    "textures",
]

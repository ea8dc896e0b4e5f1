"""Labeled images, and functions that download, read and split them.

The digits, letters and textures are included in installed packages and need no download. All other
data sets are read from local files in their official formats.
"""

from abstain_bench.data.embedded import LETTERS as LETTERS
from abstain_bench.data.embedded import LOOK_ALIKES as LOOK_ALIKES
from abstain_bench.data.embedded import Typeface as Typeface
from abstain_bench.data.embedded import digits as digits
from abstain_bench.data.embedded import digits8 as digits8
from abstain_bench.data.embedded import glyph_families as glyph_families
from abstain_bench.data.embedded import glyphs as glyphs
from abstain_bench.data.embedded import textures as textures
from abstain_bench.data.entry import DataSet as DataSet
from abstain_bench.data.images import KINDS as KINDS
from abstain_bench.data.images import Exposure as Exposure
from abstain_bench.data.images import Images as Images
from abstain_bench.data.images import Splits as Splits
from abstain_bench.data.images import split as split
from abstain_bench.data.published.catalogue import DATASETS as DATASETS
from abstain_bench.data.published.cifar import read_cifar10 as read_cifar10
from abstain_bench.data.published.cifar import read_cifar100 as read_cifar100

__all__ = [
    "DATASETS",
    "LOOK_ALIKES",
    "DataSet",
    "Exposure",
    "Images",
    "Splits",
    "digits",
    "digits8",
    "glyphs",
    "read_cifar10",
    "read_cifar100",
    "split",
    "textures",
]

"""Read published data sets in their official formats from a local folder.

Small data sets are read into memory as `Images`. Large data sets are listed as `ImageFiles`, whose
images are read and resized on request. No file is unpickled.
"""

from abstain_bench.data.images import held_out as held_out
from abstain_bench.data.images import held_out_classes as held_out_classes
from abstain_bench.data.published.cifar import CORRUPTIONS as CORRUPTIONS
from abstain_bench.data.published.cifar import EXTRA_CORRUPTIONS as EXTRA_CORRUPTIONS
from abstain_bench.data.published.cifar import read_cifar10_c as read_cifar10_c
from abstain_bench.data.published.cifar import read_cifar100_c as read_cifar100_c
from abstain_bench.data.published.image_files import ImageFiles as ImageFiles
from abstain_bench.data.published.image_files import ImageFileSplits as ImageFileSplits
from abstain_bench.data.published.image_files import find_image_folder as find_image_folder
from abstain_bench.data.published.mnist import read_emnist as read_emnist
from abstain_bench.data.published.mnist import read_fashion_mnist as read_fashion_mnist
from abstain_bench.data.published.mnist import read_idx as read_idx
from abstain_bench.data.published.mnist import read_mnist as read_mnist
from abstain_bench.data.published.sub_classes import ENTITY13 as ENTITY13
from abstain_bench.data.published.sub_classes import HELD_OUT_FINE as HELD_OUT_FINE
from abstain_bench.data.published.sub_classes import find_entity13 as find_entity13
from abstain_bench.data.published.sub_classes import read_cifar100_super as read_cifar100_super
from abstain_bench.data.published.svhn import read_svhn as read_svhn
from abstain_bench.data.published.tiny_imagenet import find_tiny_imagenet as find_tiny_imagenet
from abstain_bench.data.published.tiny_imagenet import read_tiny_imagenet as read_tiny_imagenet
from abstain_bench.data.published.wilds import find_camelyon17 as find_camelyon17
from abstain_bench.data.published.wilds import find_iwildcam as find_iwildcam

__all__ = [
    "CORRUPTIONS",
    "ImageFiles",
    "find_camelyon17",
    "find_entity13",
    "find_image_folder",
    "find_iwildcam",
    "held_out",
    "read_cifar10_c",
    "read_cifar100_c",
    "read_cifar100_super",
    "read_emnist",
    "read_fashion_mnist",
    "read_mnist",
    "read_svhn",
    "read_tiny_imagenet",
]

"""Where published data sets are, what their files weigh, and under which licence they come."""

from dataclasses import dataclass

from abstain._foundation.catalogue import Catalogue


@dataclass(frozen=True)
class Download:
    """One file of a data set.

    Attributes
    ----------
    name : str
        What the file is called.
    url : str
        Its address.
    md5 : str
        Its published checksum; empty where none is published.
    size : int
        Its bytes; 0 where unknown.
    exact : bool
        Whether the size is known to the byte; otherwise it only tells the space needed.
    into : str
        The folder it goes to, below the one that is asked for.
    archive : bool
        Whether it is unpacked.
    unpacked : str
        The folder it is unpacked in.
    """

    name: str
    url: str
    md5: str = ""
    size: int = 0
    exact: bool = True
    into: str = ""
    archive: bool = False
    unpacked: str = ""


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    Attributes
    ----------
    name : str
        The name scripts use.
    title : str
        The name people read.
    page : str
        The page of the authors.
    license : str
        Under which terms it comes, as far as its authors say.
    files : tuple of Download
        What is fetched; nothing where it can only be had by hand.
    folder : str
        Where it lies afterwards, below the folder that was asked for.
    note : str
        What else one must know: how to have it by hand, whose checksums these are.
    """

    name: str
    title: str
    page: str
    license: str
    files: tuple[Download, ...] = ()
    folder: str = ""
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(file.size for file in self.files)

    @property
    def checked(self) -> str:
        """By what the files are checked: md5, size, or archive (what the archive itself holds)."""
        if not self.files:
            return ""
        if all(file.md5 for file in self.files):
            return "md5"
        return "size" if all(file.exact and file.size for file in self.files) else "archive"


#: Every published data set by name.
SOURCES: Catalogue[Source] = Catalogue("published data set", plural="datasets")

_TORONTO = "https://www.cs.toronto.edu/~kriz"
_ZENODO = "https://zenodo.org/records"
_HOUSES = "http://ufldl.stanford.edu/housenumbers"
_CODALAB = "https://worksheets.codalab.org/rest/bundles"
_BY_TORCHVISION = "The authors publish no checksums; these are torchvision's."
_DOWN = (
    "No checksum is published; the archive's own are checked. In 2026 the server was down for "
    "months (https://github.com/p-lambda/wilds/issues/174): a copy of the archive or of its folder "
    "does as well."
)


def _idx(base: str, into: str, *md5: str) -> tuple[Download, ...]:
    """Return the four files that MNIST and those like it consist of."""
    names = (
        "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
    )  # fmt: skip
    return tuple(
        Download(name, f"{base}/{name}", own, into=into)
        for name, own in zip(names, md5, strict=True)
    )


def _archive(url: str, md5: str = "", size: int = 0) -> Download:
    return Download(url.rpartition("/")[2], url, md5, size, archive=True)


def _house(name: str, md5: str, size: int) -> Download:
    return Download(name, f"{_HOUSES}/{name}", md5, size, into="svhn")


def _wilds(name: str, bundle: str, size: int) -> Download:
    # CodaLab packs the archive anew for each reader, so that only its rough size is known.
    url = f"{_CODALAB}/{bundle}/contents/blob/"
    return Download(f"{name}.tar.gz", url, "", size, exact=False, archive=True, unpacked=name)


for _entry in (
    Source(
        "cifar10",
        "CIFAR-10, binary version",
        f"{_TORONTO}/cifar.html",
        "none stated; cite Krizhevsky (2009)",
        (
            _archive(
                f"{_TORONTO}/cifar-10-binary.tar.gz",
                "c32a1d4ab5d03f1284b67883e8d87530",
                170_052_171,
            ),
        ),
        folder="cifar-10-batches-bin",
        note="MD5 as on the authors' page.",
    ),
    Source(
        "cifar100",
        "CIFAR-100, binary version",
        f"{_TORONTO}/cifar.html",
        "none stated; cite Krizhevsky (2009)",
        (
            _archive(
                f"{_TORONTO}/cifar-100-binary.tar.gz",
                "03b5dce01913d631647c71ecec9e9cb8",
                168_513_733,
            ),
        ),
        folder="cifar-100-binary",
        note="MD5 as on the authors' page.",
    ),
    Source(
        "cifar10-c",
        "CIFAR-10-C",
        f"{_ZENODO}/2535967",
        "CC BY 4.0",
        (
            _archive(
                f"{_ZENODO}/2535967/files/CIFAR-10-C.tar",
                "56bf5dcef84df0e2308c6dcbcbbd8499",
                2_918_471_680,
            ),
        ),
        folder="CIFAR-10-C",
        note="MD5 as on Zenodo.",
    ),
    Source(
        "cifar100-c",
        "CIFAR-100-C",
        f"{_ZENODO}/3555552",
        "CC BY 4.0",
        (
            _archive(
                f"{_ZENODO}/3555552/files/CIFAR-100-C.tar",
                "11f0ed0f1191edbf9fa23466ae6021d3",
                2_918_473_216,
            ),
        ),
        folder="CIFAR-100-C",
        note="MD5 as on Zenodo.",
    ),
    Source(
        "svhn",
        "SVHN, cropped digits",
        _HOUSES,
        "not commercial",
        (
            _house("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794),
            _house("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64_275_384),
        ),
        folder="svhn",
        note=_BY_TORCHVISION,
    ),
    Source(
        "tiny-imagenet",
        "TinyImageNet",
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "that of ImageNet: not commercial",
        (
            _archive(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "90528d7ca1a48142e341f4ef8d21d0de",
                248_100_043,
            ),
        ),
        folder="tiny-imagenet-200",
        note="The authors publish no checksum; this one is used by many public readers.",
    ),
    Source(
        "mnist",
        "MNIST",
        "http://yann.lecun.com/exdb/mnist/",
        "none stated; often given as CC BY-SA 3.0",
        _idx(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "mnist",
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        folder="mnist",
        note=f"From the mirror of torchvision. {_BY_TORCHVISION}",
    ),
    Source(
        "fashion-mnist",
        "Fashion-MNIST",
        "https://github.com/zalandoresearch/fashion-mnist",
        "MIT",
        _idx(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "fashion-mnist",
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        folder="fashion-mnist",
        note="MD5 as on the authors' page. Debian: apt install dataset-fashion-mnist (its files "
        "are compressed anew, so their checksums differ).",
    ),
    Source(
        "emnist",
        "EMNIST",
        "https://www.nist.gov/itl/products-and-services/emnist-dataset",
        "public domain (NIST)",
        (
            Download(
                "gzip.zip",
                "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
                "58c8d27c78d21e728a6bc7b3cc06412e",
                561_753_746,
                into="emnist",
                archive=True,
                unpacked="emnist",
            ),
        ),
        folder="emnist/gzip",
        note=_BY_TORCHVISION,
    ),
    Source(
        "iwildcam",
        "iWildCam2020-WILDS v2.0",
        "https://wilds.stanford.edu/datasets/#iwildcam",
        "CDLA-Permissive-1.0",
        (_wilds("iwildcam_v2.0", "0x6313da2b204647e79a14b468131fcd64", 11_957_420_032),),
        folder="iwildcam_v2.0",
        note=_DOWN,
    ),
    Source(
        "camelyon17",
        "Camelyon17-WILDS v1.0",
        "https://wilds.stanford.edu/datasets/#camelyon17",
        "CC0",
        (_wilds("camelyon17_v1.0", "0xe45e15f39fb54e9d9e919556af67aabe", 10_658_709_504),),
        folder="camelyon17_v1.0",
        note=_DOWN,
    ),
    Source(
        "imagenet",
        "ImageNet (ILSVRC 2012), also for ENTITY-13",
        "https://www.image-net.org",
        "not commercial; by registration",
        folder="train",
        note="register at https://www.image-net.org, take ILSVRC2012_img_train.tar (MD5 "
        "1d675b47d978889d74fa0da5fadfb00e), and unpack it and the archive of each class into a "
        "folder of its own.",
    ),
):
    SOURCES.add(_entry)

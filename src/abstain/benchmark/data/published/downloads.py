"""Where published data sets are, what their files weigh, and under which licence they come."""

from dataclasses import dataclass

from abstain._foundation.catalogue import Catalogue

_GIGABYTE = 1 << 30


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
        Its published MD5 checksum; empty where none is published.
    size : int
        Its bytes; 0 where unknown.
    exact : bool
        Whether the size is known to the byte; otherwise it only tells the space needed.
    sha256 : str
        Its published SHA-256 checksum, by which it is checked; empty where none is published.
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
    sha256: str = ""
    into: str = ""
    archive: bool = False
    unpacked: str = ""

    @property
    def checksum(self) -> tuple[str, str]:
        """The best published checksum and its kind, such as "sha256"; both empty without one."""
        known = (("sha256", self.sha256), ("md5", self.md5))
        return next(((kind, own) for kind, own in known if own), ("", ""))

    @property
    def checked(self) -> str:
        """By what it is checked: sha256, md5, size, or archive (what the archive itself holds)."""
        return self.checksum[0] or ("size" if self.exact and self.size else "archive")

    @property
    def most(self) -> int:
        """Bytes that are fetched at most: those published, or far more than is roughly known."""
        return self.size if self.exact else 2 * self.size + _GIGABYTE


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
        """By what its files are checked, the weakest where they differ; empty without files."""
        kinds = [file.checked for file in self.files]
        return max(kinds, key=CHECKS.index, default="")


#: By what files are checked, the best first.
CHECKS = ("sha256", "md5", "size", "archive")

#: Every published data set by name.
SOURCES: Catalogue[Source] = Catalogue("published data set", listed="data list")

_TORONTO = "https://www.cs.toronto.edu/~kriz"
_ZENODO = "https://zenodo.org/records"
_HOUSES = "http://ufldl.stanford.edu/housenumbers"
_CODALAB = "https://worksheets.codalab.org/rest/bundles"
#: Who publishes SHA-256 checksums, with the sizes that stand here.
_RECORDED = "SHA-256 as TensorFlow Datasets records it"
_BY_TORCHVISION = f"The authors publish no checksums. {_RECORDED}; MD5 of torchvision."
_DOWN = (
    "No checksum is published; the archive's own are checked. In 2026 the server was down for "
    "months (https://github.com/p-lambda/wilds/issues/174): a copy of the archive or of its folder "
    "does as well."
)


def _idx(base: str, into: str, *known: tuple[str, int, str]) -> tuple[Download, ...]:
    """Return the four files that MNIST and those like it consist of."""
    names = (
        "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
    )  # fmt: skip
    return tuple(
        Download(name, f"{base}/{name}", md5, size, sha256=sha256, into=into)
        for name, (md5, size, sha256) in zip(names, known, strict=True)
    )


def _archive(url: str, md5: str, size: int, sha256: str = "") -> Download:
    return Download(url.rpartition("/")[2], url, md5, size, sha256=sha256, archive=True)


def _house(name: str, md5: str, size: int, sha256: str) -> Download:
    return Download(name, f"{_HOUSES}/{name}", md5, size, sha256=sha256, into="svhn")


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
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        folder="cifar-10-batches-bin",
        note=f"MD5 as on the authors' page. {_RECORDED}.",
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
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        folder="cifar-100-binary",
        note=f"MD5 as on the authors' page. {_RECORDED}.",
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
                "c72763e101c723b7c507b96205f7e938912a5d587376173b825850cf3cb876a7",
            ),
        ),
        folder="CIFAR-10-C",
        note=f"MD5 as on Zenodo. {_RECORDED}.",
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
        note="MD5 as on Zenodo; nobody publishes a SHA-256.",
    ),
    Source(
        "svhn",
        "SVHN, cropped digits",
        _HOUSES,
        "not commercial",
        (
            _house(
                "train_32x32.mat",
                "e26dedcc434d2e4c54c9b2d4a06d8373",
                182_040_794,
                "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            ),
            _house(
                "test_32x32.mat",
                "eb5a983be6a315427106f1b164d9cef3",
                64_275_384,
                "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            ),
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
                "6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            ),
        ),
        folder="tiny-imagenet-200",
        note=f"The authors publish no checksum. {_RECORDED}; the MD5 is that of many readers.",
    ),
    Source(
        "mnist",
        "MNIST",
        "http://yann.lecun.com/exdb/mnist/",
        "none stated; often given as CC BY-SA 3.0",
        _idx(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "mnist",
            (
                "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            (
                "d53e105ee54ea40749a09fcbcd1e9432",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            (
                "9fb629c4189551a2d022fa330f9573f3",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            (
                "ec29112dd5afa0611ce80d1b7f02629c",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
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
            (
                "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            (
                "25c81989df183df01b3e8a0aad5dffbe",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            (
                "bef4ecab320f06d8554ea6380940ec79",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            (
                "bb300cfdad3c16e7a12a480ee83cd310",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        folder="fashion-mnist",
        note=f"MD5 as on the authors' page. {_RECORDED}. Debian: apt install "
        "dataset-fashion-mnist (its files are compressed anew, so their checksums differ).",
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
                sha256="fb9bb67e33772a9cc0b895e4ecf36d2cf35be8b709693c3564cea2a019fcda8e",
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

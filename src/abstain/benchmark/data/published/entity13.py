"""BREEDS ENTITY-13: 13 super-classes of ImageNet, ten sub-classes to train on, ten as a shift."""

import re
from pathlib import Path

import numpy as np

from abstain._foundation import checks
from abstain._foundation.random import generator
from abstain.benchmark.data.published.image_folder import find_image_folder
from abstain.benchmark.data.published.pictures import FileParts, PictureFiles
from abstain.errors import InputError
from abstain.typing import Rng

#: Super-class, ten classes of the source domain, ten of the target domain.
ENTITY13: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "garment",
        (
            "n04479046", "n02667093", "n03450230", "n03980874", "n03763968",
            "n03595614", "n03045698", "n02837789", "n03770439", "n04371430",
        ),
        (
            "n03630383", "n02892767", "n03534580", "n02963159", "n03877472",
            "n02669723", "n02730930", "n03188531", "n04370456", "n04136333",
        ),
    ),
    (
        "bird",
        (
            "n01817953", "n01828970", "n01824575", "n02018207", "n01537544",
            "n02056570", "n02006656", "n02013706", "n01806567", "n01608432",
        ),
        (
            "n01798484", "n01855032", "n02058221", "n01601694", "n01855672",
            "n02037110", "n02009912", "n01514859", "n01820546", "n01797886",
        ),
    ),
    (
        "reptile",
        (
            "n01692333", "n01687978", "n01704323", "n01694178", "n01728572",
            "n01748264", "n01729977", "n01667114", "n01737021", "n01664065",
        ),
        (
            "n01756291", "n01665541", "n01742172", "n01735189", "n01667778",
            "n01669191", "n01728920", "n01744401", "n01682714", "n01693334",
        ),
    ),
    (
        "arthropod",
        (
            "n01978455", "n01773157", "n02165105", "n01774384", "n01773549",
            "n02259212", "n02167151", "n01980166", "n02206856", "n02231487",
        ),
        (
            "n02280649", "n02276258", "n02264363", "n01768244", "n02281406",
            "n02256656", "n01773797", "n02169497", "n02168699", "n02190166",
        ),
    ),
    (
        "mammal",
        (
            "n02123597", "n02417914", "n02129604", "n02398521", "n02091467",
            "n02074367", "n02488702", "n02111889", "n02123394", "n02090721",
        ),
        (
            "n02100735", "n02437616", "n02509815", "n02454379", "n02500267",
            "n02097130", "n02110958", "n02107142", "n02093428", "n02088364",
        ),
    ),
    (
        "accessory",
        (
            "n02834397", "n03325584", "n04325704", "n03958227", "n02807133",
            "n03124043", "n03814906", "n03127747", "n03424325", "n03710637",
        ),
        (
            "n03476684", "n04507155", "n03929855", "n03775071", "n04259630",
            "n04209133", "n04254777", "n04120489", "n03787032", "n03485794",
        ),
    ),
    (
        "craft",
        (
            "n02981792", "n04273569", "n03344393", "n04612504", "n02690373",
            "n03095699", "n03673027", "n04483307", "n04266014", "n02687172",
        ),
        (
            "n04147183", "n03447447", "n02951358", "n04606251", "n04552348",
            "n02782093", "n04347754", "n03947888", "n03662601", "n02692877",
        ),
    ),
    (
        "equipment",
        (
            "n04540053", "n03832673", "n02802426", "n03485407", "n04485082",
            "n04009552", "n02790996", "n03782006", "n03134739", "n02777292",
        ),
        (
            "n02979186", "n04251144", "n03535780", "n04254680", "n04039381",
            "n02799071", "n03602883", "n03759954", "n04392985", "n04069434",
        ),
    ),
    (
        "furniture",
        (
            "n04550184", "n04447861", "n03337140", "n03788365", "n03388549",
            "n02804414", "n03016953", "n03376595", "n03347037", "n04201297",
        ),
        (
            "n04344873", "n04429376", "n03131574", "n04099969", "n03201208",
            "n03891251", "n03014705", "n04589890", "n03742115", "n02791124",
        ),
    ),
    (
        "instrument",
        (
            "n04515003", "n03874599", "n03666591", "n04311174", "n03891332",
            "n03041632", "n04376876", "n02666196", "n04141975", "n03109150",
        ),
        (
            "n03720891", "n04131690", "n03706229", "n02672831", "n03196217",
            "n04153751", "n02951585", "n03841143", "n03854065", "n04154565",
        ),
    ),
    (
        "man-made structure",
        (
            "n02980441", "n02825657", "n03388043", "n03956157", "n06874185",
            "n02894605", "n03042490", "n03781244", "n04005630", "n04562935",
        ),
        (
            "n04366367", "n04604644", "n04501370", "n04435653", "n02814860",
            "n06794110", "n03733281", "n03000134", "n02776631", "n03240683",
        ),
    ),
    (
        "wheeled vehicle",
        (
            "n04252225", "n04467665", "n04037443", "n04204347", "n04509417",
            "n03791053", "n03895866", "n03769881", "n03594945", "n04065272",
        ),
        (
            "n03599486", "n03445924", "n04461696", "n02701002", "n02917067",
            "n03345487", "n03538406", "n04335435", "n04389033", "n03777568",
        ),
    ),
    (
        "produce",
        (
            "n07714990", "n12144580", "n07747607", "n07718472", "n07716906",
            "n07717556", "n07717410", "n07715103", "n07720875", "n07753113",
        ),
        (
            "n07768694", "n07734744", "n07745940", "n07749582", "n07714571",
            "n07742313", "n12620546", "n13133613", "n07753592", "n07718747",
        ),
    ),
)  # fmt: skip


_INSIDE = ("train", "ILSVRC/Data/CLS-LOC/train", "Data/CLS-LOC/train", "imagenet/train")
_WNID = re.compile(r"n\d{8}")
#: FD-Shifts draws its i.i.d. test pictures with this seed.
_SEED = 12345


def find_entity13(folder: str | Path, *, test: int = 10_000, rng: Rng = _SEED) -> FileParts:
    """Find the pictures of BREEDS ENTITY-13 in the training pictures of ImageNet.

    Parameters
    ----------
    folder : str or Path
        The ``train`` folder of ImageNet, with a folder for each class (``n01440764``), or one
        that holds it, such as ``ILSVRC`` unpacked from Kaggle.
    test : int, default=10_000
        Pictures of the source sub-classes to keep for the i.i.d. test.
    rng : int, Generator or None, default=12345
        The seed with which those are drawn.

    Returns
    -------
    FileParts
        13 super-classes. Training and i.i.d. test pictures are of the ten source sub-classes of
        each, the shift "sub-class" is the ten target sub-classes. `read` makes them small as they
        are read; all are 338,000, so pass `limit`, or read `batches`.

    Raises
    ------
    InputError
        The folder does not exist, or one of the 260 class folders is missing.
    FileFormatError
        A class folder holds no picture.

    Notes
    -----
    The 260 sub-classes are those of BREEDS with the split "rand", which FD-Shifts uses, and they
    ship here (`ENTITY13`), so the files of the BREEDS repository are not needed. The i.i.d. test
    pictures are drawn as FD-Shifts draws them (10,000 by seed 12345 from the files in their order).

    References
    ----------
    .. [1] Santurkar et al. (2021), BREEDS: benchmarks for subpopulation shift,
       https://arxiv.org/abs/2008.04859

    Examples
    --------
    >>> from abstain.benchmark.data.published import find_entity13
    >>> files = find_entity13("imagenet/train")  # doctest: +SKIP
    >>> parts = files.read(side=64, limit=20_000)  # doctest: +SKIP
    """
    where = _place(Path(folder))
    source, target = _domain(where, 1), _domain(where, 2)
    if checks.positive_int(test, "test") >= source.n:
        msg = f"`test` must leave pictures to train on; got {test:,} of {source.n:,}"
        raise InputError(msg)
    # A list, as shuffling one is what FD-Shifts does.
    order = list(range(source.n))
    generator(rng).shuffle(order)
    rows = np.array(order)
    return FileParts(
        train=source.subset(np.sort(rows[test:])),
        validation=None,
        test=source.subset(np.sort(rows[:test])),
        shifts={"sub-class": target},
    )


def _place(folder: Path) -> Path:
    if not folder.is_dir():
        msg = f"there is no folder {str(folder)!r} to read the training pictures of ImageNet from"
        raise InputError(msg)
    for found in (folder, *(folder / name for name in _INSIDE)):
        if found.is_dir() and any(_WNID.fullmatch(p.name) for p in found.iterdir() if p.is_dir()):
            return found
    msg = (
        f"{str(folder)!r} does not hold the training pictures of ImageNet: there is no class "
        "folder such as n01440764 in it; unpack ILSVRC2012_img_train.tar and the archives in it, "
        "one folder for each (https://www.image-net.org, after registration)"
    )
    raise InputError(msg)


def _domain(where: Path, column: int) -> PictureFiles:
    """Find the pictures of the source (1) or the target (2), labeled by super-class."""
    wnids = [(wnid, label) for label, row in enumerate(ENTITY13) for wnid in row[column]]
    # In the order of the folders, which is that of other readers too.
    wnids.sort()
    found = find_image_folder(where, classes=[wnid for wnid, _ in wnids])
    above = np.array([label for _, label in wnids])
    classes = tuple(row[0] for row in ENTITY13)
    return PictureFiles(where, found.names, above[found.labels], classes)

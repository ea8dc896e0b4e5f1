"""Tiny data sets in the official formats of the published ones."""

import gzip
import struct

import numpy as np

COARSE = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes",
    "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates", "people",
    "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2",
)  # fmt: skip


def write_cifar_c(folder, *, name="CIFAR-10-C", corruptions=("fog",), records=4, classes=10):
    """Pixels tell severity, image and channel; return the folder."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    whole = np.zeros((5 * records, 32, 32, 3), np.uint8)
    whole += np.arange(5 * records, dtype=np.uint8)[:, None, None, None] * 3
    whole += np.arange(3, dtype=np.uint8)
    for corruption in corruptions:
        np.save(place / f"{corruption}.npy", whole)
    np.save(place / "labels.npy", np.tile(np.arange(records, dtype=np.uint8) % classes, 5))
    return place


def write_cifar100_named(folder, held_out, *, per_class=2, seed=0):
    """CIFAR-100 whose fine classes are five of each super-class, the held-out one among them."""
    place = folder / "cifar-100-binary"
    place.mkdir(parents=True)
    # The fine classes of a super-class are not neighbors, as in the official files.
    above = np.arange(100) % 20
    fine = [f"{COARSE[c]}-{i}" for i, c in enumerate(above)]
    for c, name in enumerate(held_out):
        fine[c + 20 * (c % 5)] = name
    (place / "fine_label_names.txt").write_text("\n".join(fine) + "\n")
    (place / "coarse_label_names.txt").write_text("\n".join(COARSE) + "\n")
    rng = np.random.default_rng(seed)
    for name in ("train.bin", "test.bin"):
        result = rng.integers(0, 256, (100 * per_class, 2 + 3072), dtype=np.uint8)
        result[:, 1] = rng.permutation(np.arange(100 * per_class) % 100)
        result[:, 0] = above[result[:, 1]]
        (place / name).write_bytes(result.tobytes())
    return place


def write_svhn(folder, *, records=10, labels=None, compressed=True):
    from scipy.io import savemat

    place = folder / "svhn"
    place.mkdir(parents=True)
    for name in ("train_32x32.mat", "test_32x32.mat"):
        pixels = np.zeros((32, 32, 3, records), np.uint8)
        pixels += np.arange(records, dtype=np.uint8) * 10
        pixels[0, 5, 2] = 255  # first row, sixth column, blue
        own = np.arange(1, records + 1) if labels is None else np.asarray(labels)
        savemat(
            place / name,
            {"X": pixels, "y": own.astype(np.uint8)[:, None]},
            do_compression=compressed,
        )
    return place


def idx_bytes(array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return head + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder, *, stems=("train", "t10k"), records=20, compressed=True, first=0, classes=10):
    folder.mkdir(parents=True, exist_ok=True)
    for stem in stems:
        pixels = np.zeros((records, 28, 28), np.uint8)
        pixels[:, 3, 20] = np.arange(records)  # row 3, column 20
        labels = (first + np.arange(records) % classes).astype(np.uint8)
        for name, array in ((f"{stem}-images-idx3", pixels), (f"{stem}-labels-idx1", labels)):
            content = idx_bytes(array)
            if compressed:
                (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(content))
            else:
                (folder / f"{name}-ubyte").write_bytes(content)
    return folder


def write_picture(path, *, size=(64, 64), color=(200, 30, 90), mode="RGB", seed=None):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    if seed is None:
        image = Image.new("RGB", size, color)
    else:
        noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8)
        image = Image.fromarray(noise)
    kind = "JPEG" if path.suffix.lower() in {".jpeg", ".jpg"} else "PNG"
    image.convert(mode).save(path, kind)
    return path


def write_tiny_imagenet(folder, *, wnids=("n01443537", "n01629819", "n02509815"), records=2):
    place = folder / "tiny-imagenet-200"
    (place / "train").mkdir(parents=True)
    (place / "wnids.txt").write_text("\n".join(reversed(wnids)) + "\n")
    (place / "words.txt").write_text(f"{wnids[0]}\tgoldfish, Carassius auratus\n")
    lines = []
    for i, wnid in enumerate(wnids):
        for j in range(records):
            color = (50 * i, 10 * j, 100)
            write_picture(place / f"train/{wnid}/images/{wnid}_{j}.JPEG", color=color)
            name = f"val_{len(lines)}.JPEG"
            write_picture(place / f"val/images/{name}", color=color)
            lines.append(f"{name}\t{wnid}\t0\t32\t44\t62")
    (place / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    return place


def write_image_folder(folder, classes, *, records=2, size=(40, 30)):
    for i, name in enumerate(classes):
        for j in range(records):
            write_picture(folder / name / f"{name}_{j}.JPEG", size=size, color=(i % 256, 9, 9 * j))
    return folder


def write_iwildcam(folder, *, classes=3, times=1):
    place = folder / "iwildcam_v2.0"
    (place / "train").mkdir(parents=True)
    sizes = {"train": 4, "id_val": 2, "id_test": 2, "test": 3, "val": 2}
    splits = [name for name, size in sizes.items() for _ in range(size * times)]
    lines = ["split,location_remapped,y,filename,datetime"]
    for i, split in enumerate(splits):
        name = f"{i:032x}.jpg"
        write_picture(place / "train" / name, size=(60, 44), color=(10 * i % 256, 0, 0))
        lines.append(f"{split},{i // 4},{i % classes},{name},2013-06-05 05:44:19.000")
    (place / "metadata.csv").write_text("\n".join(lines) + "\n")
    (place / "categories.csv").write_text(
        "y,category_id,name\n0,0,empty\n1,24,impala\n2,7,duiker\n"
    )
    return place, len(splits)


def write_camelyon17(folder):
    place = folder / "camelyon17_v1.0"
    (place / "patches").mkdir(parents=True)
    lines = [",patient,node,x_coord,y_coord,tumor,slide,center,split"]
    # Of each center two images of split 0 and, of the centers 0, 3, 4, eight of split 1.
    rows = [(c, s) for c in range(5) for s in ([0] * 2 + [1] * (8 if c in {0, 3, 4} else 1))]
    for i, (center, split) in enumerate(rows):
        patient, node, x, y = f"{center * 20 + 4:03d}", 1, 3328 + i, 21792
        slide = f"patient_{patient}_node_{node}"
        color = (10 * center, i, 0)
        write_picture(place / f"patches/{slide}/patch_{slide}_x_{x}_y_{y}.png", color=color)
        lines.append(f"{i},{patient},{node},{x},{y},{i % 2},{center * 10},{center},{split}")
    (place / "metadata.csv").write_text("\n".join(lines) + "\n")
    return place, len(rows)

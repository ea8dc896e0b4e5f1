"""Draw the masters of the data set `glyphs` from freely licensed fonts of Debian.

    python tools/render_glyphs.py FOLDER

FOLDER gets the packages (`apt-get download`, which needs no rights) and their contents; what is
there is not fetched again. The masters go to bench/src/abstain_bench/data/glyph_masters.npz with
their table of families beside them. Needs Pillow. Nothing of this runs where abstain is installed.
"""

import csv
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "src" / "abstain" / "benchmark" / "data" / "glyph_masters.npz"
TABLE = HERE / "glyph_fonts.csv"

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
SYMBOLS = "&@#$%?!+*=/<"
CHARACTERS = LETTERS + DIGITS + SYMBOLS

#: Side of a master; the capital H is this high on it, and no glyph is larger than the room.
SIDE, CAPITAL, ROOM = 48, 30, 42

#: Drawn so many times larger and averaged, for smooth edges whatever the hinting says.
FINER = 8

#: Levels of gray that are kept: with more the file grows and nothing is seen.
LEVELS = 16


@dataclass(frozen=True)
class Font:
    """A line of the table."""

    family: str
    style: str
    role: str
    license: str
    package: str
    file: str


def fonts() -> list[Font]:
    """Read the table of fonts."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return [Font(**line) for line in csv.DictReader(lines)]


def unpacked(package: str, folder: Path) -> Path:
    """Fetch and unpack a package; return where its contents are."""
    place = folder / package
    if not place.is_dir():
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(place)], check=True)
    return place


def found(font: Font, folder: Path) -> Path:
    """Return the file of a font."""
    place = unpacked(font.package, folder)
    files = sorted(path for path in place.rglob("*") if path.name == font.file)
    if not files:
        msg = f"{font.package} has no {font.file}"
        raise SystemExit(msg)
    return files[0]


def drawn(path: Path) -> np.ndarray:
    """Draw all characters of a font: (characters, side, side), 0 for one that it lacks."""
    size = 10 * CAPITAL * FINER // 7
    face = ImageFont.truetype(str(path), size)
    high = face.getbbox("H", anchor="ls")
    face = ImageFont.truetype(str(path), round(size * CAPITAL * FINER / (high[3] - high[1])))
    absent = _mask(face, "\ufffe")
    return np.stack([_master(_mask(face, c), absent) for c in CHARACTERS])


def _mask(face: ImageFont.FreeTypeFont, character: str) -> np.ndarray:
    left, top, right, bottom = face.getbbox(character, anchor="ls")
    if right <= left or bottom <= top:
        return np.zeros((1, 1), np.uint8)
    picture = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(picture).text((-left, -top), character, font=face, fill=255, anchor="ls")
    return np.asarray(picture)


def _master(mask: np.ndarray, absent: np.ndarray) -> np.ndarray:
    """Put a glyph in the middle of its master, smaller where it has no room."""
    empty = np.zeros((SIDE, SIDE), np.uint8)
    if not mask.any() or (mask.shape == absent.shape and np.array_equal(mask, absent)):
        return empty
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    cut = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = min(1.0, ROOM * FINER / max(cut.shape))
    height, width = (max(1, round(n * scale / FINER)) for n in cut.shape)
    small = np.asarray(Image.fromarray(cut).resize((width, height), Image.Resampling.BOX))
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    empty[top : top + height, left : left + width] = small
    return empty


def declared(package: str, folder: Path) -> str:
    """Return the licences that Debian's copyright file of a package names."""
    (path,) = (folder / package).glob("usr/share/doc/*/copyright")
    text = path.read_text(encoding="utf-8", errors="replace")
    return "; ".join(dict.fromkeys(re.findall(r"^License:\s*(\S.*)$", text, re.MULTILINE)))


def main() -> None:
    """Draw all masters and write them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    table = fonts()
    masters = np.stack([drawn(found(font, folder)) for font in table])
    levels = np.round(masters / 255 * (LEVELS - 1)).astype(np.uint8)
    packed = levels[..., 0::2] * LEVELS + levels[..., 1::2]
    np.savez_compressed(
        TARGET,
        packed=packed,
        characters=np.array(list(CHARACTERS)),
        **{
            name: np.array([getattr(font, name) for font in table])
            for name in ("family", "style", "role", "license", "package")
        },
    )
    for font in table:
        print(f"{font.family}: {font.license}; Debian says: {declared(font.package, folder)}")
    lacking = [
        f"{font.family} {c}"
        for font, own in zip(table, levels, strict=True)
        for c, glyph in zip(CHARACTERS, own, strict=True)
        if not glyph.any()
    ]
    print(f"{TARGET.stat().st_size:,} bytes; lacking: {lacking}")


if __name__ == "__main__":
    main()

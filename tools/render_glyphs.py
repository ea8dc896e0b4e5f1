"""Render the glyphs of the data set `glyphs` from freely licensed fonts of Debian.

    python tools/render_glyphs.py FOLDER

Downloads the packages into FOLDER with `apt-get download`, which requires no privileges, and
unpacks them. Packages that exist in FOLDER are not downloaded again. Writes the images and the
table of fonts to bench/src/abstain_bench/data/glyph_masters.npz. Requires Pillow. An installed
abstain does not use this script.
"""

import csv
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

TOOLS = Path(__file__).resolve().parent
TARGET = TOOLS.parent / "bench" / "src" / "abstain_bench" / "data" / "glyph_masters.npz"
TABLE = TOOLS / "glyph_fonts.csv"

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DIGITS = "0123456789"
SYMBOLS = "&@#$%?!+*=/<"
CHARACTERS = LETTERS + DIGITS + SYMBOLS

#: Side of an image, height of the capital H and largest side of a glyph, in pixels.
SIDE, CAPITAL_HEIGHT, MAX_GLYPH_SIDE = 48, 30, 42

#: Glyphs are rendered this many times larger and averaged, so edges are smooth despite hinting.
SCALE = 8

#: Number of gray levels. More levels make the file larger without a visible difference.
LEVELS = 16


@dataclass(frozen=True)
class Font:
    """A row of the table of fonts."""

    family: str
    style: str
    role: str
    license: str
    package: str
    file: str


def read_fonts() -> list[Font]:
    """Read the table of fonts."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Font(**row) for row in csv.DictReader(file)]


def unpack(package: str, folder: Path) -> Path:
    """Download and unpack a package; return the folder of its contents."""
    contents = folder / package
    if not contents.is_dir():
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", str(archive), str(contents)], check=True)
    return contents


def font_file(font: Font, folder: Path) -> Path:
    """Return the file of a font."""
    contents = unpack(font.package, folder)
    files = sorted(path for path in contents.rglob("*") if path.name == font.file)
    if not files:
        msg = f"{font.package} has no {font.file}"
        raise SystemExit(msg)
    return files[0]


def render(path: Path) -> np.ndarray:
    """Render all characters of a font, shape (characters, SIDE, SIDE); a missing one is black."""
    size = 10 * CAPITAL_HEIGHT * SCALE // 7
    face = ImageFont.truetype(str(path), size)
    _, top, _, bottom = face.getbbox("H", anchor="ls")
    size = round(size * CAPITAL_HEIGHT * SCALE / (bottom - top))
    face = ImageFont.truetype(str(path), size)
    # U+FFFE is not a character, so the font renders its replacement for missing characters.
    replacement = _glyph(face, "\ufffe")
    return np.stack([_centered_image(_glyph(face, c), replacement) for c in CHARACTERS])


def _glyph(face: ImageFont.FreeTypeFont, character: str) -> np.ndarray:
    left, top, right, bottom = face.getbbox(character, anchor="ls")
    if right <= left or bottom <= top:
        return np.zeros((1, 1), np.uint8)
    image = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(image).text((-left, -top), character, font=face, fill=255, anchor="ls")
    return np.asarray(image)


def _centered_image(glyph: np.ndarray, replacement: np.ndarray) -> np.ndarray:
    """Center a glyph in an image, and reduce it to the largest size; black if it is missing."""
    image = np.zeros((SIDE, SIDE), np.uint8)
    if not glyph.any() or np.array_equal(glyph, replacement):
        return image
    rows, columns = np.flatnonzero(glyph.any(1)), np.flatnonzero(glyph.any(0))
    cropped = glyph[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    factor = min(1.0, MAX_GLYPH_SIDE * SCALE / max(cropped.shape))
    height, width = (max(1, round(n * factor / SCALE)) for n in cropped.shape)
    resized = np.asarray(Image.fromarray(cropped).resize((width, height), Image.Resampling.BOX))
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    image[top : top + height, left : left + width] = resized
    return image


def debian_licenses(package: str, folder: Path) -> str:
    """Return the licenses in Debian's copyright file of a package."""
    (path,) = (folder / package).glob("usr/share/doc/*/copyright")
    text = path.read_text(encoding="utf-8", errors="replace")
    return "; ".join(dict.fromkeys(re.findall(r"^License:\s*(\S.*)$", text, re.MULTILINE)))


def main() -> None:
    """Render all fonts and write the images."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    fonts = read_fonts()
    images = np.stack([render(font_file(font, folder)) for font in fonts])
    levels = np.round(images / 255 * (LEVELS - 1)).astype(np.uint8)
    # Two pixels of 16 levels in one byte.
    packed = levels[..., 0::2] * LEVELS + levels[..., 1::2]
    np.savez_compressed(
        TARGET,
        packed=packed,
        characters=np.array(list(CHARACTERS)),
        **{
            name: np.array([getattr(font, name) for font in fonts])
            for name in ("family", "style", "role", "license", "package")
        },
    )
    for font in fonts:
        licenses = debian_licenses(font.package, folder)
        print(f"{font.family}: {font.license}; in Debian's copyright file: {licenses}")
    missing = [
        f"{font.family} {character}"
        for font, font_images in zip(fonts, levels, strict=True)
        for character, image in zip(CHARACTERS, font_images, strict=True)
        if not image.any()
    ]
    print(f"{TARGET.stat().st_size:,} bytes; missing glyphs: {missing}")


if __name__ == "__main__":
    main()

"""Colors and dashes of the scores: told apart without color vision, on white and on black."""

# Okabe and Ito (2008), "Color universal design", with a yellow too pale for lines on white left
# out; darkened on white and lightened on black to a contrast of at least 3 to 1.
LIGHT = ("#0b62a8", "#c14d00", "#00795a", "#a8488b", "#6b6b00", "#2b8fbf", "#8a5a00", "#5b5b66")
DARK = ("#6db3ef", "#f58b3c", "#35c9a0", "#e59ac8", "#d6d05a", "#8fd3f5", "#d9a95b", "#b9b9c6")

# After one round of colors the dashes change, so 8 x 4 scores look different.
_DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3])


def variable(index: int) -> str:
    """Return the CSS variable that holds the color of a score."""
    return f"var(--score-{index % len(LIGHT)})"


def dash(index: int) -> list[int]:
    """Return the dash pattern of a score; neighbors differ as well as rounds of colors."""
    return _DASHES[(index + index // len(LIGHT)) % len(_DASHES)]

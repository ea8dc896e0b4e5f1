"""The picture of the README: risk-coverage curves on clean and shifted MNIST digits."""

from pathlib import Path

import abstain as ab
from abstain.confidence import score
from abstain.plots import RiskCoverageDisplay

_COLORS = {"linear": "#0b6fa4", "mlp": "#c8501e"}
_DASHES = {"clean": "-", "shifted": (0, (5, 2))}
_TITLES = {
    "selective": "Selective risk: of the accepted, wrong",
    "generalized": "Generalized risk: of all, accepted and wrong",
}


def draw(predictions: Path, picture: Path) -> Path:
    """Draw both curves of every classifier on MNIST, clean and shifted.

    Parameters
    ----------
    predictions : Path
        What the demo wrote.
    picture : Path
        The file to write; its suffix says the format.

    Returns
    -------
    Path
        The file written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = dict(zip(_TITLES, figure.subplots(1, 2), strict=True))
    parts = ab.read_predictions(predictions, probabilities="p_*", by=["data", "model", "split"])
    for key, part in parts.items():
        names = dict(key)
        if names["data"] != "mnist":
            continue
        confidence, loss = score("msr", part).values, ab.per_sample_loss(part)
        augrc = ab.augrc(confidence, loss)
        for kind, ax in axes.items():
            display = RiskCoverageDisplay.from_predictions(confidence, loss, kind=kind)
            display.plot(
                ax,
                usable=False,
                color=_COLORS[names["model"]],
                linestyle=_DASHES[names["split"]],
                label=f"{names['model']}, {names['split']}: AUGRC {augrc:.4f}",
            )
    for kind, ax in axes.items():
        ax.set(title=_TITLES[kind], xlim=(0, 1), ylim=(0, None), ylabel="Risk")
    axes["selective"].get_legend().remove()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)
    return picture

"""Draw the figure of the README: risk-coverage curves on clean and shifted MNIST digits."""

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


def draw(predictions: Path, path: Path) -> Path:
    """Draw both curves of every classifier on MNIST, clean and shifted.

    Parameters
    ----------
    predictions : Path
        File of predictions that `examples.digits` wrote.
    path : Path
        File to write. Its suffix determines the format.

    Returns
    -------
    Path
        The written file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = dict(zip(_TITLES, figure.subplots(1, 2), strict=True))
    groups = ab.read_predictions(predictions, probabilities="p_*", by=["data", "model", "split"])
    for key, group in groups.items():
        names = dict(key)
        if names["data"] != "mnist":
            continue
        confidence, loss = score("msr", group).values, ab.per_sample_loss(group)
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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path

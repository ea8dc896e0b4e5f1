"""A comparison to draw, and the end of every figure."""

import pytest
from matplotlib import pyplot as plt
from tests.plots.comparisons import made_up


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def plain():
    return made_up()

"""A toy problem, batches, and the short loop that every objective is trained by."""

import numpy as np
import torch
from torch import nn

from abstain import training
from abstain.training import OBJECTIVES, Network, Output

CLASSES = 3
WIDTH = 16

#: Options that suit a problem of three classes and a branch of a few units.
SMALL = {
    "deep-gamblers": {"reward": 1.8},
    "confidnet": {"hidden": 16},
    "self-adaptive": {"momentum": 0.9},
}


def made(name, *, rng=0, **options):
    return training.make(name, rng=rng, **{**SMALL.get(name, {}), **options})


def toy(n=600, seed=0):
    """Three Gaussian classes of which two overlap: some samples cannot be known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(CLASSES, size=n)
    centers = np.array([[0.0, 0.0], [1.4, 0.0], [0.0, 6.0]])
    x = centers[y] + rng.normal(size=(n, 2))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def network(objective, seed=0):
    generator = torch.Generator().manual_seed(seed)
    # Without torch's own first weights, which would come from its global generator.
    backbone = nn.Sequential(nn.utils.skip_init(nn.Linear, 2, WIDTH), nn.Tanh())
    with torch.no_grad():
        for p in backbone.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    return Network(backbone, objective.head(WIDTH, CLASSES))


def train(objective, net, x, y, *, epochs=12, start=0, seed=0, rate=0.01):
    """Train by Adam, new for each epoch so that a resumed run differs in nothing; mean losses."""
    means = []
    for epoch, phase in enumerate(objective.plan(epochs)):
        if epoch < start:
            continue
        objective.enter(phase)
        net.enter(phase)
        net.train()
        optimizer = torch.optim.Adam(net.trained(), lr=rate)
        order = np.random.default_rng((seed, epoch)).permutation(len(y))
        losses = []
        for rows in torch.tensor(order).split(64):
            loss = objective(net(x[rows]), y[rows], index=rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(float(np.mean(losses)))
    return means


def last_phase(objective):
    objective.enter(objective.phases[-1])
    return objective


def output(n=6, classes=4, *, seed=0, scale=2.0, dtype=torch.float64, grad=False):
    """A full output of random numbers, and labels."""
    rng = np.random.default_rng(seed)

    def some(*shape):
        return torch.tensor(rng.normal(size=shape) * scale, dtype=dtype, requires_grad=grad)

    out = Output(some(n, classes), some(n, 3), some(n), some(n), some(n, classes))
    return out, torch.tensor(rng.integers(classes, size=n))


NAMES = list(OBJECTIVES)

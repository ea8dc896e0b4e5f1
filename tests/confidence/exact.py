"""Definitions in 200-digit decimals: what the scores must rank like."""

from decimal import Decimal, getcontext, localcontext

getcontext().prec = 200


def softmax(z):
    weights = [Decimal(float(v)).exp() for v in z]
    total = sum(weights)
    return [w / total for w in weights]


def normalized(p):
    entries = [Decimal(float(v)) for v in p]
    total = sum(entries)
    return [v / total for v in entries]


def msr(p):
    return max(p)


def margin(p):
    first, second = sorted(p, reverse=True)[:2]
    return first - second


def gini(p):
    return sum(v * v for v in p)


def pe(p):
    return sum(v * v.ln() for v in p if v > 0)


def gen(p, gamma=0.1, top=100):
    terms = [v * (1 - v) for v in sorted(p, reverse=True)[:top]]
    with localcontext() as context:
        # Powers are slow; nothing is subtracted any more, so fewer digits do.
        context.prec = 25
        return -sum(t ** Decimal(gamma) for t in terms if t > 0)


def ratio(p):
    first, second = sorted(p, reverse=True)[:2]
    return first / second


# From the definition's value to the scale of the score.


def log_odds(value):
    return value.ln() - (1 - value).ln()


def log_odds_of_margin(value):
    return (1 + value).ln() - (1 - value).ln()


def log(value):
    return value.ln()


def unchanged(value):
    return value


BY_NAME = {
    "msr": (msr, log_odds),
    "margin": (margin, log_odds_of_margin),
    "gini": (gini, log_odds),
    "pe": (pe, unchanged),
    "gen": (gen, unchanged),
    "logit_margin": (ratio, log),
}

"""Static line charts as SVG, without JavaScript."""

import math
from collections.abc import Iterator
from typing import Final

from abstain.plots.bands import METHOD_CLASS_PREFIX
from abstain.plots.style import css_variable, dash_pattern
from abstain.report.document import ChartLine, LineChart
from abstain.report.render.elements import format_attributes

#: Size of the drawing, and position of the axes inside it.
_WIDTH: Final = 560
_HEIGHT: Final = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 550, 10, 286
#: Vertical position of the labels of the x axis and of its title.
_LABEL_Y: Final = 310
_TITLE_Y: Final = 334

_X_TICKS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Maximum number of steps between the ticks of the y axis.
_MAX_STEPS: Final = 6


def line_chart_svg(chart: LineChart) -> str:
    """Return the chart as an ``svg`` element."""
    attributes = {
        "class": "lines",
        "viewBox": f"0 0 {_WIDTH} {_HEIGHT}",
        "aria-hidden": "true",
        "focusable": "false",
    }
    return f"<svg{format_attributes(attributes)}>{''.join(_elements(chart))}</svg>"


def _elements(chart: LineChart) -> Iterator[str]:
    """Yield the SVG elements of the axes, the reference lines and the lines."""
    y_ticks = choose_ticks(chart.y_max)
    for tick in y_ticks:
        y = _y(tick, chart)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_RIGHT}"/>'
        text = _format_tick(tick, y_ticks, is_percent=chart.is_percent)
        yield f'<text class="end" x="{_LEFT - 8}" y="{y + 4.5:.1f}">{text}</text>'
    for tick in _X_TICKS:
        css_class = ' class="end"' if tick == 1 else ""
        yield f'<text{css_class} x="{_x(tick)}" y="{_LABEL_Y}">{100 * tick:.0f}%</text>'
    middle = (_LEFT + _RIGHT) / 2
    yield f'<text x="{middle:g}" y="{_TITLE_Y}">{chart.x_title}</text>'
    if chart.marked_x is not None:
        yield f'<path class="reference" d="M{_x(chart.marked_x)} {_BOTTOM}V{_TOP}"/>'
    if chart.has_diagonal:
        yield f'<path class="reference" d="M{_x(0)} {_y(0, chart)}L{_x(1)} {_y(1, chart)}"/>'
    for line in chart.lines:
        yield _line(line, chart)


def _line(line: ChartLine, chart: LineChart) -> str:
    """Return an SVG group with a line and its dots."""
    points = [f"{_x(x)} {_y(y, chart)}" for x, y in zip(line.x, line.y, strict=True)]
    color = css_variable(line.index)
    dashes = "" if dash_pattern(line.index)[1] == 0 else _join(dash_pattern(line.index))
    path = {"d": f"M{'L'.join(points)}", "stroke": color, "stroke-dasharray": dashes}
    dots = "".join(
        f'<circle cx="{_x(x)}" cy="{_y(y, chart)}" r="4" fill="{color}"/>' for x, y in line.dots
    )
    css_class = format_attributes({"class": f"{METHOD_CLASS_PREFIX}{line.index}"})
    return f"<g{css_class}><path{format_attributes(path)}/>{dots}</g>"


def _join(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


def _x(value: float) -> str:
    return f"{_LEFT + value * (_RIGHT - _LEFT):.1f}"


def _y(value: float, chart: LineChart) -> float:
    """Return the vertical position of a value. Values outside the axis are drawn at its end."""
    share = min(value / chart.y_max, 1.0)
    return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)


def choose_ticks(maximum: float) -> list[float]:
    """Return ticks at round numbers from 0 to at most `maximum`.

    Examples
    --------
    >>> choose_ticks(0.45), choose_ticks(1.0)
    ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    """
    magnitude = 10.0 ** math.floor(math.log10(maximum))
    steps = (factor * magnitude for factor in (0.1, 0.2, 0.5, 1, 2, 5))
    step = next(step for step in steps if maximum / step <= _MAX_STEPS)
    n_ticks = math.floor(maximum / step + 1e-9) + 1
    return [float(f"{i * step:.6g}") for i in range(n_ticks)]


def _format_tick(value: float, ticks: list[float], *, is_percent: bool) -> str:
    step = ticks[1] if len(ticks) > 1 else 1.0
    step *= 100 if is_percent else 1
    decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
    return f"{100 * value:.{decimals}f}%" if is_percent else f"{value:.{decimals}f}"

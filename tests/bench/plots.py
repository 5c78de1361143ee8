"""Plots as SVG, without a library: ratios as bars with their spread and threshold, curves on two logarithmic axes."""

import math
import statistics
from html import escape

WIDTH, LEFT, RIGHT, TOP = 900, 330, 70, 46
BAR, STEP = 13, 21
COLOURS = {"met": "#2f7d4f", "MISSED": "#b3382c", "shown": "#5b6b7c", "not judged": "#b58a1e", "server waits": "#5b6b7c"}
LINES = ("#2b5c8a", "#b3382c", "#2f7d4f", "#b58a1e", "#6b4c8a", "#5b6b7c")


def text(x, y, content, anchor="start", size=12, weight="normal"):
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour="#999", width=1.0, dashes=""):
    style = f'stroke="{colour}" stroke-width="{width}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def document(width, height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head += f' font-family="sans-serif" role="img"><title>{escape(title)}</title>'
    back = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, back, text(12, 22, title, size=15, weight="bold"), *parts, "</svg>"]) + "\n"


def ratio_bars(title, figures):
    """One bar for each figure with a ratio: the median; the thin line is the spread, the black mark the threshold."""
    figures = [figure for figure in figures if not figure.skipped and figure.theirs]
    highest = max([max(figure.ratios()) for figure in figures] + [1.0])
    # A single outlier must not squeeze all the others.
    end = min(highest, 1.6 * max([statistics.median(figure.ratios()) for figure in figures] + [1.0]))
    height = TOP + STEP * len(figures) + 34

    def place(ratio):
        return LEFT + (WIDTH - LEFT - RIGHT) * min(ratio, end) / end

    parts = [line(place(1), TOP - 8, place(1), height - 26, "#444", 1, "3 3"), text(place(1), height - 10, "1", "middle")]
    for number, figure in enumerate(figures):
        y, median = TOP + STEP * number, statistics.median(figure.ratios())
        parts.append(text(LEFT - 8, y + BAR - 2, f"{figure.row}, {figure.metric}", "end", 11))
        colour = COLOURS.get(figure.verdict(), "#5b6b7c")
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{place(median) - LEFT:.1f}" height="{BAR}" fill="{colour}"/>')
        low, high = min(figure.ratios()), max(figure.ratios())
        parts.append(line(place(low), y + BAR / 2, place(high), y + BAR / 2, "#111", 1.2))
        if figure.limit is not None and figure.limit.of == "ratio":
            bound = figure.limit.least if figure.limit.least is not None else figure.limit.most
            parts.append(line(place(bound), y - 2, place(bound), y + BAR + 2, "#000", 2.5))
        parts.append(text(WIDTH - RIGHT + 10, y + BAR - 2, f"{median:.2f}", size=11))
    return document(WIDTH, height, title, parts)


# --- curves ---


def powers(low, high):
    """The powers of ten that enclose these values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def short(value):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def curve_lines(title, x_name, unit, series):
    """series: a dict of name to pairs of x and value, all positive; values that are not are left out."""
    series = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in series.items()}
    points = [point for one in series.values() for point in one]
    if not points:
        return None
    width, height, left, right, top, bottom = 900, 420, 80, 250, 50, 60
    xs, ys = powers(*bounds([x for x, _ in points])), powers(*bounds([y for _, y in points]))

    def at(x, y):
        along = math.log10(x / xs[0]) / math.log10(xs[-1] / xs[0])
        up = math.log10(y / ys[0]) / math.log10(ys[-1] / ys[0])
        return left + (width - left - right) * along, height - bottom - (height - top - bottom) * up

    parts = [text(left, height - 14, x_name, size=12), text(12, 42, unit, size=12)]
    for x in xs:
        parts += [line(at(x, ys[0])[0], top, at(x, ys[0])[0], height - bottom, "#ddd")]
        parts.append(text(at(x, ys[0])[0], height - bottom + 18, short(x), "middle"))
    for y in ys:
        parts += [line(left, at(xs[0], y)[1], width - right, at(xs[0], y)[1], "#ddd")]
        parts.append(text(left - 8, at(xs[0], y)[1] + 4, short(y), "end"))
    for number, (name, one) in enumerate(series.items()):
        colour = LINES[number % len(LINES)]
        places = [at(x, y) for x, y in sorted(one)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = top + 10 + 20 * number
        parts += [line(width - right + 14, y, width - right + 34, y, colour, 2)]
        parts.append(text(width - right + 40, y + 4, name))
    return document(width, height, title, parts)


def bounds(values):
    return min(values), max(values)

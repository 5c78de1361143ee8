"""docs/benchmarks.md and its plots: what a whole run measured goes between two marks, what people wrote stays."""

import re
import statistics
from datetime import datetime, timezone

from figures import MISSED, SHOWN, SKIPPED, UNJUDGED, amount, limit_text
from plots import curve_lines, ratio_bars

BEGIN = "<!-- written by make bench: begin -->"
END = "<!-- written by make bench: end -->"
# The plots, and the workloads of each.
PLOTS = (
    ("small", "Small responses compared with nginx (above 1: ztserve is faster)", ("manifest", "range", "beside")),
    ("bulk", "Large responses compared with nginx", ("bulk", "whole", "cold", "export", "network")),
    ("other", "Uploads, hashing, slices and decoding compared with their yardsticks", ("upload", "components", "verification", "slice", "zstd")),
)


def figure_row(figure):
    if figure.verdict() == SKIPPED:
        return f"| {figure.row} | skipped: {figure.skipped} | | | | | | |"
    ratio = check = theirs = ""
    if figure.theirs:
        pairs = figure.ratios()
        ratio = f"{statistics.median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f})"
        theirs = f"{figure.beside}: {amount(statistics.median(figure.theirs), figure.unit)}"
    if figure.check:
        check = f"{figure.check_ratio():.2f}"
    own = amount(statistics.median(figure.ours), figure.unit)
    if not figure.theirs:
        own += f" ({amount(min(figure.ours), figure.unit)} to {amount(max(figure.ours), figure.unit)})"
    busy = " / ".join(f"{share:.2f}" for share in figure.processor)
    verdict = {MISSED: "**missed**", UNJUDGED: "not judged", SHOWN: ""}.get(figure.verdict(), figure.verdict())
    cells = (f"{figure.row}, {figure.metric}", own, theirs, ratio, check, busy, limit_text(figure.limit), verdict)
    return "| " + " | ".join(cells) + " |"


def table(figures):
    head = ("workload", "ztserve", "yardstick", "ratio (lowest to highest)", "yardstick against itself", "processors busy", "must reach", "")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *map(figure_row, figures)])


def missed(figures):
    rows = [f"{figure.row} ({figure.metric}, compared with {figure.beside})" for figure in figures if figure.verdict() == MISSED]
    unjudged = [f"{figure.row}, {figure.metric} ({figure.why_unjudged()})" for figure in figures if figure.verdict() == UNJUDGED]
    skipped = [f"{figure.row} ({figure.skipped})" for figure in figures if figure.verdict() == SKIPPED]
    lines = [f"Missed: {'; '.join(rows)}." if rows else "All judged thresholds are met."]
    if unjudged:
        lines.append(f"Not judged: {'; '.join(unjudged)}.")
    if skipped:
        lines.append(f"Skipped: {'; '.join(skipped)}.")
    return "\n".join(lines)


def curve_table(measured):
    names = [series.name for series in measured.curve.series if any(series.name in values for _, values in measured.points)]
    units = {series.name: series.unit for series in measured.curve.series}
    lines = ["| " + " | ".join([measured.curve.x, *names]) + " |", "|" + " --- |" * (1 + len(names))]
    for x, values in measured.points:
        cells = [f"{x:,}", *(amount(values[name], units[name]) if name in values else "" for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def curve_plots(measured):
    """Pairs of a file's name and its content, one for each unit."""
    units = list(dict.fromkeys(series.unit for series in measured.curve.series))
    for number, unit in enumerate(units):
        names = [series.name for series in measured.curve.series if series.unit == unit]
        series = {name: [(x, values[name]) for x, values in measured.points if name in values] for name in names}
        drawing = curve_lines(measured.curve.title, measured.curve.x, unit, series)
        if drawing is not None:
            yield f"curve-{measured.curve.name}{'-' + str(number + 1) if len(units) > 1 else ''}.svg", drawing


def machine_lines(machine, others):
    names = ("processor", "cores", "memory", "kernel", "system", "nginx", "libmicrohttpd", "ztserve", "commit")
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {machine[name]} |" for name in names if machine.get(name))]
    worst = f"{others[0]:.2f} cores before the run, at most {others[1]:.2f} during a row"
    return "\n".join([*lines, f"| other programs | {worst} |"])


def generated(figures, curves, machine, others, options):
    """The part between the marks, and the plots as a dict of file name to content."""
    plots, parts = {}, []
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    parts.append(f"Measured on {day} with {options['rounds']} rounds of {options['seconds']:g} s.\n\n{machine_lines(machine, others)}")
    parts.append(missed(figures))
    for name, title, workloads in PLOTS:
        chosen = [figure for figure in figures if figure.workload in workloads]
        if any(figure.theirs for figure in chosen):
            plots[f"{name}.svg"] = ratio_bars(title, chosen)
            parts.append(f"![{title}](benchmarks/{name}.svg)")
    parts.append(table(figures))
    for measured in curves:
        parts.append(f"### {measured.curve.title}")
        if measured.skipped:
            parts.append(f"Skipped: {measured.skipped}.")
        if measured.curve.note:
            parts.append(measured.curve.note)
        if measured.points:
            parts.append(curve_table(measured))
            for file, drawing in curve_plots(measured):
                plots[file] = drawing
                parts.append(f"![{measured.curve.title}](benchmarks/{file})")
    return "\n\n".join(parts), plots


def insert(page, text):
    """The page with the text between its marks; ValueError if it has none."""
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    if not pattern.search(page):
        raise ValueError("the page has lost its marks")
    return pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page)


def write(folder, figures, curves, machine, others, options):
    """Into docs/: benchmarks.md and benchmarks/*.svg, of which those of earlier runs are removed."""
    text, plots = generated(figures, curves, machine, others, options)
    page, drawings = folder / "benchmarks.md", folder / "benchmarks"
    page.write_text(insert(page.read_text(), text))
    drawings.mkdir(exist_ok=True)
    for old in drawings.glob("*.svg"):
        old.unlink()
    for name, content in plots.items():
        (drawings / name).write_text(content)

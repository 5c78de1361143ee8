"""docs/benchmarks.md and its plots: a section for each family of processors, between two marks of its own.

A whole run writes docs/benchmarks/FAMILY.json, what was measured on one family. Section and plots follow from that file and
from reasons.json, in which people say why a row is missed or not judged; so a reason may be written afterwards, and
`bench.py --render` writes the page again. What stands outside the marks, and other families' sections, stay."""

import json
import re
import statistics
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from curve import Curve, Measured, Series
from figures import MISSED, SHOWN, SKIPPED, UNJUDGED, amount, from_values, limit_text, to_values
from machine import slug
from plots import curve_lines, ratio_bars

REASONS = Path(__file__).resolve().parent / "reasons.json"
MARK = "<!-- written by make bench, {family}: {which} -->"
NO_REASON = "no reason has been written yet"
# The plots, and the workloads of each.
PLOTS = (
    ("small", "Small responses compared with nginx (above 1: ztserve is faster)", ("manifest", "range", "tls-small", "beside")),
    ("bulk", "Large responses compared with nginx", ("bulk", "whole", "tls-bulk", "cold", "export", "network")),
    ("other", "Uploads, hashing, slices and decoding compared with their yardsticks", ("upload", "components", "verification", "verification-cold", "slice", "zstd", "bucket-cold", "s3-copy", "s3-parts")),
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
    verdict = {MISSED: "**missed**", SHOWN: ""}.get(figure.verdict(), figure.verdict())
    cells = (f"{figure.row}, {figure.metric}", own, theirs, ratio, check, busy, limit_text(figure.limit), verdict)
    return "| " + " | ".join(cells) + " |"


def table(figures):
    head = ("workload", "ztserve", "yardstick", "ratio (lowest to highest)", "yardstick against itself", "processors busy", "must reach", "")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *map(figure_row, figures)])


def unsaid(figures, reasons):
    """The rows that need a reason and have none."""
    return [figure.name() for figure in figures if figure.verdict() in (MISSED, UNJUDGED) and not reasons.get(figure.name())]


def listed(title, lines):
    return [f"{title}:\n\n" + "\n".join(f"- {line}" for line in lines)] if lines else []


def missed(figures, reasons):
    """What is missed, not judged or skipped, and why."""

    def because(figure):
        return f"Reason: {reasons.get(figure.name(), NO_REASON)}"

    rows = [
        f"{figure.name()}: {figure.judged_value():.2f}, must be {limit_text(figure.limit)}. {because(figure)}"
        for figure in figures
        if figure.verdict() == MISSED
    ]
    unjudged = [f"{figure.name()}: {figure.why_unjudged()}. {because(figure)}" for figure in figures if figure.verdict() == UNJUDGED]
    skipped = [f"{figure.row}: {figure.skipped}" for figure in figures if figure.verdict() == SKIPPED]
    parts = listed("Missed", rows) or ["All judged thresholds are met."]
    return "\n\n".join([*parts, *listed("Not judged", unjudged), *listed("Skipped", skipped)])


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
    names = (
        "processor", "instructions", "second cache", "cores", "memory", "kernel", "congestion control", "system", "nginx",
        "libmicrohttpd", "ztserve", "commit",
    )  # fmt: skip
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {machine[name]} |" for name in names if machine.get(name))]
    worst = f"{others[0]:.2f} cores before the run, at most {others[1]:.2f} during a row"
    return "\n".join([*lines, f"| other programs | {worst} |"])


# --- one run ---


def to_run(figures, curves, machine, others, options):
    """What is kept of a run, for JSON. others: cores before the run, and at most during a row."""
    return {
        "day": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "rounds": options["rounds"],
        "seconds": options["seconds"],
        "machine": machine,
        "others": [round(cores, 4) for cores in others],
        "figures": [to_values(figure) for figure in figures],
        "curves": [
            {**asdict(one), "curve": {name: value for name, value in asdict(one.curve).items() if name != "points"}}
            for one in curves
        ],
    }


def one_line_each(run):
    """As JSON, with a line for each figure and curve, so that the changes of a commit can be read."""
    many = ("figures", "curves")
    lines = [f'  "{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in run.items() if name not in many]
    for name in many:
        each = ",\n    ".join(json.dumps(one, ensure_ascii=False) for one in run[name])
        lines.append(f'  "{name}": [\n    {each}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def curve_from(values):
    fields = {**values["curve"], "series": tuple(Series(**one) for one in values["curve"]["series"]), "points": None}
    return Measured(Curve(**fields), values["points"], values["others"], values["skipped"])


def section(run, reasons):
    """A family's part of the page, and its plots as a dict of file name to content."""
    family, plots = run["machine"]["family"], {}
    figures = [from_values(values) for values in run["figures"]]
    parts = [f"## {family}", f"Measured on {run['day']} with {run['rounds']} rounds of {run['seconds']:g} s."]
    parts += [machine_lines(run["machine"], run["others"]), missed(figures, reasons)]

    def draw(title, file, drawing):
        plots[f"{slug(family)}-{file}"] = drawing
        parts.append(f"![{title}](benchmarks/{slug(family)}-{file})")

    for name, title, workloads in PLOTS:
        chosen = [figure for figure in figures if figure.workload in workloads]
        if any(figure.theirs for figure in chosen):
            draw(title, f"{name}.svg", ratio_bars(title, chosen))
    parts.append(table(figures))
    for measured in map(curve_from, run["curves"]):
        parts.append(f"### {measured.curve.title}")
        if measured.skipped:
            parts.append(f"Skipped: {measured.skipped}.")
        if measured.curve.note:
            parts.append(measured.curve.note)
        if measured.points:
            parts.append(curve_table(measured))
            for file, drawing in curve_plots(measured):
                draw(measured.curve.title, file, drawing)
    return "\n\n".join(parts), plots


# --- the page ---


def insert(page, family, text):
    """The page with the text between the family's marks, which come after all others if it has none yet."""
    begin, end = (MARK.format(family=slug(family), which=which) for which in ("begin", "end"))
    marked = f"{begin}\n\n{text}\n\n{end}"
    pattern = re.compile(re.escape(begin) + ".*" + re.escape(end), re.DOTALL)
    if pattern.search(page):
        return pattern.sub(lambda _: marked, page)
    ends = list(re.finditer(MARK.format(family="[a-z0-9-]+", which="end"), page))
    if not ends:
        raise ValueError("the page has lost its marks")
    return page[: ends[-1].end()] + "\n\n" + marked + page[ends[-1].end() :]


def runs(folder):
    """The last whole run of every family."""
    return [json.loads(path.read_text()) for path in sorted((folder / "benchmarks").glob("*.json"))]


def all_reasons():
    """By family and row."""
    return json.loads(REASONS.read_text())


def rendered(folder):
    """The page and its plots, as runs and reasons want them."""
    page, plots = (folder / "benchmarks.md").read_text(), {}
    for run in runs(folder):
        family = run["machine"]["family"]
        text, drawn = section(run, all_reasons().get(slug(family), {}))
        page = insert(page, family, text)
        plots.update(drawn)
    return page, plots


def render(folder):
    """Writes docs/benchmarks.md and benchmarks/*.svg; drawings that the page does not show are removed."""
    page, plots = rendered(folder)
    (folder / "benchmarks.md").write_text(page)
    for name, content in plots.items():
        (folder / "benchmarks" / name).write_text(content)
    for old in (folder / "benchmarks").glob("*.svg"):
        if f"(benchmarks/{old.name})" not in page:
            old.unlink()


def write(folder, *measured):
    """What a whole run measured (see to_run), in place of the last run of the same family."""
    run = to_run(*measured)
    (folder / "benchmarks").mkdir(exist_ok=True)
    path = folder / "benchmarks" / f"{slug(run['machine']['family'])}.json"
    path.write_text(one_line_each(run))
    render(folder)

"""ztserve compared with nginx and other yardsticks: the same bytes, the same machine, in turn; ratios, thresholds and verdicts.

Each figure is the median over the rounds; a ratio is taken within a round. Above 1, ztserve is ahead, unless a row says
otherwise. The exit status is 0 if every threshold is met, 1 if something is missed, 2 if not everything could be judged.
"""

import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import report
from context import HERE, TOP, Context, Skipped, note
from curve import Measured
from figures import OTHERS_LIMIT, SHOWN, SKIPPED, UNJUDGED, WAITED, Figure, amount, exit_status, limit_text
from machine import adopt_orphans, choose_processors, describe, others_between, slug, take_sample
from servers import use_program
from workload import WORKLOADS

IDLE_S, IDLE_TRIES = 2, 5
# The modules of workloads, in the order in which they run.
MODULES = ("reading", "tls", "network", "uploading", "computing", "files", "hub", "statistics_figures", "differences", "pulling", "buckets", "s3", "mirroring")


def find_workloads():
    for name in MODULES:
        importlib.import_module(name)
    return sorted(WORKLOADS, key=lambda one: MODULES.index(one.run.__module__))


def find_curves():
    curves = []
    for path in sorted(HERE.glob("curves*.py")):
        curves += importlib.import_module(path.stem).CURVES
    return curves


def choose(wanted, workloads, curves):
    """Those of the given names, in their own order; all if none is given. None if a name is unknown."""
    names = [one.name for one in workloads] + [curve.name + "-curve" for curve in curves]
    if any(name not in (*names, "curves") for name in wanted):
        return None
    every_curve = not wanted or "curves" in wanted
    return (
        [one for one in workloads if not wanted or one.name in wanted],
        [curve for curve in curves if every_curve or curve.name + "-curve" in wanted],
    )


def list_names(workloads, curves):
    print("WORKLOAD=name runs one of these, WORKLOAD='name name' several; without it, all run and docs/benchmarks.md is written.")
    for one in workloads:
        print(f"  {one.name:14} {one.title}")
    for curve in curves:
        print(f"  {curve.name + '-curve':14} {curve.title}")
    if curves:
        print(f"  {'curves':14} all of these curves")


def refuse(arguments, workloads, curves):
    wanted = arguments.workload.strip()
    if wanted != "list":
        note(f"error: {wanted}: not the name of a workload, or not all of them are")
    list_names(workloads, curves)
    if wanted != "list":
        return 2
    return 3 if arguments.check_names else 0


def idle_others():
    """Cores that others take while nothing is measured; waits a little for what is just ending, as a build before this."""
    for _ in range(IDLE_TRIES):
        first = take_sample()
        time.sleep(IDLE_S)
        others = others_between(first, take_sample())
        if others <= OTHERS_LIMIT:
            break
    return others


def verdict_text(figure):
    return f"{UNJUDGED}: {figure.why_unjudged()}" if figure.verdict() == UNJUDGED else figure.verdict()


def show(figure):
    if figure.verdict() == SKIPPED:
        note(f"  {figure.row}: skipped: {figure.skipped}")
        return
    text = f"  {figure.row}, {figure.metric}: {amount(median(figure.ours), figure.unit)}"
    if figure.theirs:
        low, high = min(figure.ratios()), max(figure.ratios())
        text += f", {figure.beside} {amount(median(figure.theirs), figure.unit)}: {median(figure.ratios()):.2f}"
        text += f" ({low:.2f} to {high:.2f})"
    if figure.check:
        text += f", {figure.beside} against itself {figure.check_ratio():.2f}"
    if figure.processor:
        text += ", processor " + " / ".join(f"{share:.2f}" for share in figure.processor)
    if figure.verdict() != SHOWN:
        text += f"; {limit_text(figure.limit)}: {verdict_text(figure)}"
    print(text, flush=True)


def median(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def run_workload(context, one):
    begun, figures = time.monotonic(), []
    context.progress(f"==> {one.name}: {one.title}")
    try:
        for figure in one.run(context):
            show(figure)
            figures.append(figure)
    except Skipped as reason:
        figures.append(Figure(one.name, one.title, "", "", skipped=str(reason)))
        show(figures[-1])
    context.progress(f"    {time.monotonic() - begun:.0f} s")
    return figures


def run_curve(context, curve):
    context.progress(f"==> {curve.name}-curve: {curve.title}")
    measured = Measured(curve, [])
    with context.watch() as others:
        try:
            for x, values in curve.points(context):
                units = {series.name: series.unit for series in curve.series}
                texts = (f"{name} {amount(value, units[name])}" for name, value in values.items())
                context.progress(f"  {x:,} {curve.x}: " + ", ".join(texts))
                measured.points.append((x, values))
        except Skipped as reason:
            measured.skipped = str(reason)
            note(f"  skipped: {reason}")
    measured.others = others[0]
    return measured


def run_all(arguments, chosen, processors):
    folder = Path(tempfile.mkdtemp(prefix="bench."))
    folder.chmod(0o755)
    context = Context(folder, arguments.build, processors, arguments.rounds, arguments.seconds)
    try:
        figures = [figure for one in chosen[0] for figure in run_workload(context, one)]
        curves = [run_curve(context, curve) for curve in chosen[1]]
        return figures, curves
    finally:
        context.close()
        shutil.rmtree(folder, ignore_errors=True)


def summarize(figures):
    status = exit_status(figures)
    counts = {}
    for figure in figures:
        counts[figure.verdict()] = counts.get(figure.verdict(), 0) + 1
    print("==> " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    for figure in figures:
        if figure.verdict() not in ("met", SHOWN, WAITED):
            reason = f" ({figure.why_unjudged()})" if figure.verdict() == UNJUDGED else ""
            print(f"  {figure.verdict()}: {figure.name()}{reason}")
    return status


def note_reasons(figures, machine):
    print(f"docs/benchmarks.md is written: the section {machine['family']}")
    for name in report.unsaid(figures, report.all_reasons().get(slug(machine["family"]), {})):
        note(f"  tests/bench/reasons.json says no reason for: {name}")


def stop_on(number):
    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(number, interrupt)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="", help="names, or list")
    parser.add_argument("--render", action="store_true", help="measure nothing; write the page from the last runs and reasons.json")
    parser.add_argument("--check-names", action="store_true", help="measure nothing; 2 if a name is unknown, 3 after a list")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--build", type=Path, default=TOP / "build-bench")
    arguments = parser.parse_args()
    if arguments.render:
        report.render(TOP / "docs")
        return 0
    workloads, curves = find_workloads(), find_curves()
    chosen = choose(arguments.workload.replace(",", " ").split(), workloads, curves)
    if chosen is None:
        return refuse(arguments, workloads, curves)
    if arguments.check_names:
        return 0
    program = use_program(arguments.build / "ztserve")
    processors = choose_processors()
    if processors is None:
        note("error: one processor is not enough: server and client need one each")
        return 2
    machine = describe(TOP, str(program))
    for name, value in machine.items():
        print(f"{name}: {value}")
    others = idle_others()
    print(f"other programs take {others:.2f} cores before the start", flush=True)
    if others > OTHERS_LIMIT:
        note(f"error: other programs take more than {OTHERS_LIMIT} of a core: nothing that is measured now could be judged")
        return 2
    stop_on(signal.SIGTERM)
    stop_on(signal.SIGHUP)
    adopt_orphans()
    begun = time.monotonic()
    try:
        figures, measured = run_all(arguments, chosen, processors)
    except KeyboardInterrupt:
        note("interrupted; servers and files are removed")
        return 2
    print(f"==> {(time.monotonic() - begun) / 60:.1f} minutes")
    if not arguments.workload and "ZTSERVE" in os.environ:
        note("docs/benchmarks.md is not written: ZTSERVE names a program that may be of another commit")
    elif not arguments.workload:
        worst = max([figure.others for figure in figures] + [curve.others for curve in measured])
        report.write(TOP / "docs", figures, measured, machine, (others, worst), vars(arguments))
        note_reasons(figures, machine)
    return summarize(figures) if figures else 0


if __name__ == "__main__":
    sys.exit(main())

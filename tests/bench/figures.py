"""What a measurement says: medians, ratios of the same round, thresholds, verdicts and the exit status. Nothing here measures."""

import math
import statistics
from dataclasses import asdict, dataclass, field

MET, MISSED, UNJUDGED, SKIPPED, SHOWN = "met", "MISSED", "not judged", "skipped", "shown"
# The row has a threshold, but says nothing about the server: it or its yardstick waited for the client.
WAITED = "server waits"
# Cores that others may take while a row is measured.
OTHERS_LIMIT = 0.2
# How far nginx against itself may be from 1.
CHECK_LIMIT = 0.1


@dataclass(frozen=True)
class Limit:
    """A bound of the median ratio, or with of="value" of the median of ztserve's own figure."""

    least: float | None = None
    most: float | None = None
    of: str = "ratio"

    def holds(self, value):
        # Judged as it is printed: 1.297 is not 1.3, but 1.2999999 is.
        value = round(value, 3)
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


@dataclass
class Figure:
    """One row of the table: what ztserve and its yardstick reached in each round.

    ratio is "ours/theirs" for what should be large, "theirs/ours" for times; check is a second process of the yardstick,
    measured in the same rounds. others is how many cores other programs took meanwhile. skipped is the reason for which
    nothing was measured."""

    workload: str
    row: str
    metric: str
    unit: str
    ours: list = field(default_factory=list)
    theirs: list = field(default_factory=list)
    check: list = field(default_factory=list)
    limit: Limit | None = None
    beside: str = "nginx"
    ratio: str = "ours/theirs"
    others: float = 0.0
    skipped: str = ""
    processor: tuple = ()  # processor seconds of ztserve and of the yardstick per second measured, medians
    busy_least: float = 0.0  # what both must be for the row to be judged

    def name(self):
        """Says which row it is, also where a reason is written for it."""
        beside = f"compared with {self.beside}" if self.theirs else ""
        return ", ".join(part for part in (self.row, self.metric, beside) if part)

    def ratios(self):
        return ratios(self.ours, self.theirs, self.ratio)

    def check_ratio(self):
        pairs = ratios(self.check, self.theirs, self.ratio)
        return statistics.median(pairs) if pairs else None

    def judged_value(self):
        if self.limit is not None and self.limit.of == "value":
            return statistics.median(self.ours)
        return statistics.median(self.ratios()) if self.theirs else None

    def verdict(self):
        if self.skipped:
            return SKIPPED
        if self.limit is None:
            return SHOWN
        if self.busy_least and min(self.processor) < self.busy_least:
            return WAITED
        if self.others > OTHERS_LIMIT or not self.check_holds():
            return UNJUDGED
        return MET if self.limit.holds(self.judged_value()) else MISSED

    def why_unjudged(self):
        """The reason for which the verdict is what it is, if the row is not judged."""
        reasons = []
        if self.others > OTHERS_LIMIT:
            reasons.append(f"others took {self.others:.2f} cores, more than {OTHERS_LIMIT:g}")
        if not self.check_holds():
            reasons.append(f"{self.beside} against itself {self.check_ratio():.2f}, more than a tenth from 1")
        return " and ".join(reasons)

    def check_holds(self):
        """Percentiles of latency scatter too much for this check."""
        check = self.check_ratio()
        return check is None or self.unit == "µs" or abs(math.log(check)) <= math.log(1 + CHECK_LIMIT)


def ratios(ours, theirs, direction):
    """One a round. A yardstick of 0 or a time of 0 has no ratio and is an error of the measurement."""
    if direction == "theirs/ours":
        ours, theirs = theirs, ours
    return [a / b for a, b in zip(ours, theirs)]


def to_values(figure):
    """As JSON keeps it, with six digits of what was measured."""
    values = asdict(figure)
    for name in ("ours", "theirs", "check", "processor"):
        values[name] = [float(f"{value:.6g}") for value in values[name]]
    return values


def from_values(values):
    limit = values["limit"] and Limit(**values["limit"])
    return Figure(**{**values, "limit": limit, "processor": tuple(values["processor"])})


def exit_status(figures):
    """0: all met; 1: something missed; 2: not everything could be judged."""
    verdicts = {figure.verdict() for figure in figures}
    if UNJUDGED in verdicts or not verdicts:
        return 2
    if MISSED in verdicts:
        return 1
    return 2 if SKIPPED in verdicts else 0


def spread(values):
    return min(values), max(values)


# --- as text ---


def amount(value, unit):
    """A figure in the unit in which people say it; three digits."""
    if unit in ("B/s", "B/cpu s"):
        return f"{value / 1e9:.2f} G{unit}"
    if unit in ("/s", "/cpu s"):
        return f"{value:,.0f} {unit}"
    if unit == "s/GB":
        return f"{value:.3f} s/GB"
    if unit == "µs" and value >= 10_000:
        return f"{value / 1000:.1f} ms"
    return f"{value:.3g} {unit}" if abs(value) < 1000 else f"{value:,.0f} {unit}"


def limit_text(limit):
    if limit is None:
        return ""
    sign, bound = ("≥", limit.least) if limit.least is not None else ("≤", limit.most)
    return f"{sign} {bound:g}" + (" (own figure)" if limit.of == "value" else "")

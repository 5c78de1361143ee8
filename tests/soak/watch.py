"""Memory, threads and descriptors of a process, and whether they stay flat."""

import os
from pathlib import Path
from statistics import median

MIB = 1 << 20


class Watch:
    def __init__(self, pid):
        self.folder = Path(f"/proc/{pid}")
        self.samples = []

    def sample(self):
        status = dict(line.split(":", 1) for line in (self.folder / "status").read_text().splitlines())
        self.samples.append(
            {
                "memory": int(status["VmRSS"].split()[0]) * 1024,
                "threads": int(status["Threads"]),
                "descriptors": len(os.listdir(self.folder / "fd")),
            }
        )
        return self.samples[-1]

    def spans(self, name):
        """The medians of the second and the last quarter of the time: the first quarter fills caches."""
        values = [sample[name] for sample in self.samples]
        quarter = max(len(values) // 4, 1)
        return median(values[quarter : 2 * quarter] or values), median(values[-quarter:])

    def growths(self, memory_slack):
        """What grew, as lines; none if everything stayed flat."""
        allowed = {"memory": lambda before: before * 0.1 + memory_slack, "threads": lambda _: 0,
                   "descriptors": lambda before: before * 0.25 + 16}  # fmt: skip
        lines = []
        for name, slack in allowed.items():
            before, after = self.spans(name)
            if after > before + slack(before):
                lines.append(f"{name} grew from {before} to {after}")
        return lines

    def summary(self):
        (memory, memory_end), (fds, fds_end) = self.spans("memory"), self.spans("descriptors")
        return (
            f"memory {memory / MIB:.1f} -> {memory_end / MIB:.1f} MiB, descriptors {fds:.0f} -> {fds_end:.0f}, "
            f"threads {self.samples[-1]['threads']}"
        )

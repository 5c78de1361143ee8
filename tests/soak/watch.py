"""Memory, threads and descriptors of a process, and whether they stay flat."""

import os
from pathlib import Path
from statistics import median

MIB = 1 << 20
# Descriptors of uploads: those of the last 256 that ended are told for ten minutes, and each has a folder of its own.
UPLOADS_MAX = 1024


class Watch:
    def __init__(self, pid):
        self.folder = Path(f"/proc/{pid}")
        self.samples = []

    def descriptors(self):
        """All descriptors but those of uploads, and those of uploads."""
        targets = []
        for name in os.listdir(self.folder / "fd"):
            try:
                targets.append(os.readlink(self.folder / "fd" / name))
            except OSError:
                pass
        of_uploads = sum(".ztserve-uploads/" in target for target in targets)
        return len(targets) - of_uploads, of_uploads

    def sample(self):
        status = dict(line.split(":", 1) for line in (self.folder / "status").read_text().splitlines())
        descriptors, of_uploads = self.descriptors()
        self.samples.append(
            {
                "memory": int(status["VmRSS"].split()[0]) * 1024,
                "threads": int(status["Threads"]),
                "descriptors": descriptors,
                "uploads": of_uploads,
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
        most = max(sample["uploads"] for sample in self.samples)
        if most > UPLOADS_MAX:
            lines.append(f"uploads had {most} descriptors")
        return lines

    def summary(self):
        (memory, memory_end), (fds, fds_end) = self.spans("memory"), self.spans("descriptors")
        return (
            f"memory {memory / MIB:.1f} -> {memory_end / MIB:.1f} MiB, descriptors {fds:.0f} -> {fds_end:.0f}, "
            f"of uploads {self.samples[-1]['uploads']}, threads {self.samples[-1]['threads']}"
        )

#!/usr/bin/env python3
"""Makes docs/screenshots/pull.svg: a terminal in which a model is pulled, interrupted with control-C, and pulled to its end.

ZTSERVE=build/ztserve .venv/bin/python tests/cli/recording.py [FILE]

What is shown is what the program wrote, at the times at which it wrote it. The server is one on this machine, behind a line of 16 MB/s.
"""

import html
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests" / "http")]

from containers import dense, pattern, zt1  # noqa: E402
from server_process import PROGRAM, ServerProcess  # noqa: E402
from terminal import Screen, SlowLine, run_in_terminal  # noqa: E402

COLUMNS, ROWS = 100, 8
BYTES_S = 16_000_000
TENSORS, TENSOR_BYTES = 6, 16 << 20
NAME = "example/llama"
CELL, LINE, MARGIN = 8.0, 19, 14
PAUSE_S, END_S = 0.9, 4
STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d7dde5; white-space: pre }
.prompt { fill: #7fd18b }
"""


def type_command(screen, command):
    screen.begun += -PAUSE_S
    screen.write(f"$ {command}\r\n")
    screen.begun += -PAUSE_S


def record(folder):
    """The states of the screen. Pauses before and after each command are as long as reading takes; all else is as it was."""
    (folder / "root/example").mkdir(parents=True)
    model = zt1({f"layers.{i}.weight": dense(pattern(TENSOR_BYTES, seed=i), digest="sha256") for i in range(TENSORS)})
    (folder / "root" / f"{NAME}.zt").write_bytes(model)
    server = ServerProcess(folder / "root")
    line = SlowLine(server.port, BYTES_S)
    screen = Screen(COLUMNS)
    environment = {"LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(folder)}
    for interrupt_when in (r" 4\d %", None):
        type_command(screen, f"ztserve pull {line.url}/{NAME}")
        run_in_terminal(screen, [PROGRAM, "pull", f"{line.url}/{NAME}"], folder, environment, interrupt_when)
        if interrupt_when:
            screen.write("\r\n")  # as a shell does
    type_command(screen, "ztserve verify llama.zt")
    run_in_terminal(screen, [PROGRAM, "verify", "llama.zt"], folder, environment)
    line.close()
    assert server.stop() == 0
    assert (folder / "llama.zt").read_bytes() == model
    return screen.frames


def distinct(frames):
    """Without states that nobody sees: those that the next one follows within 40 ms, and repeated ones."""
    kept = []
    for at, rows in frames:
        shown = tuple(rows[-ROWS:])
        if kept and (kept[-1][1] == shown or at - kept[-1][0] < 0.04):
            kept[-1] = (kept[-1][0], shown)
        else:
            kept.append((at, shown))
    return kept


def row_of(text, y):
    escaped = html.escape(text)
    if text.startswith("$ "):
        escaped = f'<tspan class="prompt">$</tspan>{escaped[1:]}'
    return f'<text x="{MARGIN}" y="{y}" xml:space="preserve">{escaped}</text>'


def draw(frames):
    """All states stacked in a strip, which moves past a window one screen high. What draws no animations shows the last one."""
    height = ROWS * LINE
    width = COLUMNS * CELL
    ends = [at for at, _ in frames[1:]] + [frames[-1][0] + END_S]
    begun, lasts = frames[0][0], ends[-1] - frames[0][0]
    steps, strip = [], []
    for index, (at, rows) in enumerate(frames):
        steps.append(f"{(at - begun) / lasts:.3%} {{ transform: translateY({-index * height}px) }}")
        strip += [row_of(text, index * height + (i + 1) * LINE - 5) for i, text in enumerate(rows) if text]
    last = (len(frames) - 1) * height
    return f"""<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width + 2 * MARGIN:.0f} {height + 2 * MARGIN}">
<title>ztserve pull in a terminal: a bar, an interruption, and the same command that goes on where it was</title>
<style>{STYLE}
.strip {{ transform: translateY({-last}px) }}
@media (prefers-reduced-motion: no-preference) {{ .strip {{ animation: play {lasts:.2f}s step-end infinite }} }}
@keyframes play {{ {" ".join(steps)} 100% {{ transform: translateY({-last}px) }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
<svg y="{MARGIN}" width="100%" height="{height}" overflow="hidden"><g class="strip">
{chr(10).join(strip)}
</g></svg>
</svg>
"""


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / "docs/screenshots/pull.svg"
    with tempfile.TemporaryDirectory() as made:
        target.write_text(draw(distinct(record(Path(made)))), encoding="utf-8")

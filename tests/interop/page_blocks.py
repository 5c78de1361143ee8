"""The fenced blocks of a page, and the commands in those of a shell."""

import re
import subprocess
from dataclasses import dataclass, field

from server_process import TOP

PAGES = ["README.md", "deploy/package/README.Debian", *sorted(str(path.relative_to(TOP)) for path in (TOP / "docs").rglob("*.md"))]


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


@dataclass
class Command:
    """A command of a shell; `shown` are the lines of output that the page shows below it, each behind `#> `."""

    where: str
    text: str
    comment: str = ""
    shown: list = field(default_factory=list)

    @property
    def refused_with(self):
        """The status of an error that the comment above it announces at its end, as text."""
        found = re.search(r": ([45]\d\d)\b[^:]*$", self.comment)
        return found[1] if found else None


def blocks_of(page):
    """Those of a page in Markdown; in README.Debian, which has no fences, the lines that are indented."""
    text = (TOP / page).read_text()
    fences = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
    if not page.endswith(".md"):
        fences = re.compile(r"^()()((?:  \S.*\n)+)", re.MULTILINE)
    found = [Block(page, text[: match.start()].count("\n") + 1, match[2], match[3]) for match in fences.finditer(text)]
    for block in found if not page.endswith(".md") else []:
        block.language = "sh"
    return found


def is_complete(text):
    return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).returncode == 0


def commands_of(block):
    """A command ends where bash, given its lines so far, expects no more."""
    found, comment, begun = [], "", ""
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("#>"):
            found[-1].shown.append(line[2:].strip())
        elif line.startswith("#") and not begun:
            comment = line
        elif line.strip():
            begun += line.strip() + "\n" if not begun else line + "\n"
            if not line.endswith("\\") and is_complete(begun):
                found.append(Command(f"{block.page}:{number}", begun.strip(), comment))
                comment, begun = "", ""
    assert not begun, f"{block}: bash expects more after {begun}"
    return found


def shown_by(program):
    """What the lines of a program in Python print, as their comments say: print(…)  # printed."""
    return re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)


def matches(shown, printed):
    """Whether lines of output are the ones that a page shows: … is any text, in a line or as a line."""
    pattern = r"\s*".join(re.escape(" ".join(line.split())).replace("…", r".*?") for line in shown)
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None

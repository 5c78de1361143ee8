#!/usr/bin/env python3
"""Counts sentences with turns of phrase that English engineers do not write: in each page of docs/, in the comments of
each room, and in the messages of each layer. It is an alarm, not the aim: rewrite the sentence from its meaning, do not
replace the word. Pages may have 3 % of such sentences. Rooms and messages may have what english.txt records, which may
only fall; `tests/lint/english.py --update` records lower figures and new rooms, `--worst N` prints more sentences."""

import argparse
import math
import pathlib
import re
import sys

PAGE_MOST = 3
TOP = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("core", "config", "server")
STATUS = r"`?[2345]\d\d\b"

# What to write instead, and the pattern. A pattern must be precise: a false alarm teaches people to ignore the lint.
TURNS = [
    (
        "a noun, not a what-clause ('hidden files return 404')",
        r"(?:(?:^|[.;:,(] )What (?!a\b)|\b(?:of|from|for|by|with|to|in|and|that|as|is|than|but|about|at|on|only|all|or) what )"
        r"(?:is|was|are|were|has|had|have|it|they|he|an?|the|one|does|did|do|can|may|must|no|each|only|any|clients?|others?)\b",
    ),
    ("a noun, not 'who may …'", r"(?<!those )(?<!clients )(?<!users )(?<!one )\b(?:[Ww]ho|[Ww]hoever) (?:may|can|has|is|does|wants|takes|asks|holds|reads|writes)\b"),
    ("a subject first, not 'Of …'", r"(?:^|[.;:] )Of (?!course)[^.;:,]{2,60}?(?:,| (?:is|are|has|have|it|they|only|the|one)\b)"),
    ("the verb and its object in order, not 'From/In/To/By … is'", r"(?:^|[.;:] )(?:From|In|To|By|Behind|Beside|With|At) [^.;:,]{2,40} (?:lies|lie|stands?|comes?|goes|belongs?|is only)\b"),
    ("the noun again, not 'that of'", r"\b(?:that|those) of\b|\bthe (?:one|ones) (?:that|which|who|of)\b"),
    ("'no client', 'any request' or passive voice", r"\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody|[Ww]hoever|[Ww]hatever)\b"),
    ("'does not …', 'no …'", r"\b[Nn]othing (?:is|was|has|that|of|else|to|more|in|can|may|must|happens?|goes|waits|knows|comes)\b"),
    ("'returns 404', 'fails with 409'", r"\b(?:is|are|was|gets?|got|gives?|given|answers?|answered(?: by| with)?) " + STATUS),
    ("'returns', 'downloads', 'fetches'", r"\b[Bb](?:rings?|ringing|rought)\b"),
    ("'is in', 'is between'", r"\b(?:lies|lie|lying)\b(?! about)"),
    ("'reported', 'returned', 'distinguishes'", r"\b(?:told|tells?)\b(?! (?:apart|you|clients? to|the server))"),
    ("'exists', 'is present'", r"\b(?:is|are|was|were|be|not) there\b(?! (?:is|are|a|an|no|any|to)\b)"),
    ("'continues', 'resumes'", r"\b(?:go|goes|going|went) on\b|\b(?:take|takes|taking|took|taken) (?:it |them )?up\b(?! to)"),
    ("'is', 'means', 'waits'", r"\b(?:stands?|stood) (?:for|by|in|at|behind|beside|before|as|alone|there)\b"),
    ("nothing: it is a filler", r"\b(?:in all|of (?:its|their|his|her) own|all the same|as it (?:is|was)|as they (?:are|were)|by then|none so|no less|such as are|for being)\b(?! (?:the|of|other|cases|its|members|files|formats|their|parts))"),
    ("'one after another', 'per call'", r"\bat a time\b"),
    ("'except', 'without'", r"\bbut for\b"),
    ("'next to', 'with', 'compared with'", r"\bbeside\b"),
    ("'must'", r"\b(?:is|are) to be\b"),
    ("'fix', 'repair'", r"\b(?:mend|mends|mended|anew)\b"),
    ("'is not a …'", r"(?<![Tt]here )\b(?:is|are|was) no (?!longer|more|less|such|evidence|difference|[a-z]+er\b|need|space|room|memory|answer|response|other|[a-z]+ (?:for|to|in|at|left|with|on|of|that)\b)[a-z]+\b"),
    ("the noun", r"\b(?:hears? of|is of no use|in its stead|in place of|thereof|hereby|wherein|whereupon|therefor)\b(?! (?:bytes|elements|there))"),
]
COMPILED = [(instead, re.compile(pattern)) for instead, pattern in TURNS]

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*(.*?)\*/|//([^\n]*)', re.DOTALL)
LITERALS = re.compile(r'/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\\n])*\'|((?:"(?:\\.|[^"\\\n])*"[\s\\]*)+)', re.DOTALL)
ONE_LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def split(paragraph):
    """The sentences of a paragraph that have three words or more; code is left out."""
    paragraph = re.sub(r"`[^`]*`", "CODE", re.sub(r"\s+", " ", paragraph)).strip()
    sentences = re.split(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z`*\"(])", paragraph)
    return [sentence for sentence in sentences if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 3]


def page_sentences(text):
    """Prose, list items, headings and longer cells of tables; no code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    paragraphs, cells = [[]], []
    for line in text.splitlines():
        if line.startswith("|"):
            cells += [cell.strip() for cell in line.strip("|").split("|") if len(cell.split()) > 4]
        if not line.strip() or line.startswith(("|", "    ")):
            paragraphs.append([])
        elif re.match(r"\s*(?:#+|[-*]|\d+\.) ", line):
            paragraphs.append([re.sub(r"^\s*(?:#+|[-*]|\d+\.) ", "", line)])
        else:
            paragraphs[-1].append(line.strip())
    for paragraph in [" ".join(lines) for lines in paragraphs] + cells:
        yield from split(paragraph)


def comment_sentences(text):
    """The prose of C comments. Lines with code or drawings are left out."""
    for block, line_comment in COMMENT.findall(text):
        paragraphs = [[]]
        for line in (block or line_comment).splitlines():
            line = re.sub(r"^\s*\*? ?", "", line)
            if not line.strip():
                paragraphs.append([])
            elif not re.search(r"[{};]\s*$|^\s*[-=─|+]{3}|\) \(|->", line):
                paragraphs[-1].append(line.strip())
        for lines in paragraphs:
            yield from split(" ".join(lines))


def message_sentences(text):
    """String literals that read as prose."""
    for run in LITERALS.findall(text):
        words = "".join(ONE_LITERAL.findall(run)).replace('\\"', '"').replace("\\n", " \n")
        if "§" in words or not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", words):
            continue
        for line in words.splitlines():
            yield from split(line)


def places(top):
    """(place, sentence) of all pages, rooms and messages below top."""
    for path in [top / "README.md", *sorted((top / "docs").rglob("*.md"))]:
        if path.is_file():
            for sentence in page_sentences(path.read_text()):
                yield str(path.relative_to(top)), sentence
    for layer in LAYERS:
        for path in sorted((top / layer).rglob("*.[ch]")):
            text = path.read_text()
            room = str(path.parent.relative_to(top))
            for sentence in comment_sentences(text):
                yield room, sentence
            for sentence in message_sentences(text):
                yield f"messages of {layer}", sentence


def turns_in(sentence):
    return [instead for instead, pattern in COMPILED if pattern.search(sentence)]


def read_bounds(path):
    lines = path.read_text().splitlines() if path.is_file() else []
    rows = [line.rsplit(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    return {place: int(percent) for place, percent in rows}


def write_bounds(path, bounds):
    head = "# Sentences with a turn of english.py, in per cent: at most so many in the comments of a room, and in the messages\n"
    head += "# of a layer. A figure may only fall.\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "".join(f"{place} {percent}\n" for place, percent in sorted(bounds.items())))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--top", type=pathlib.Path, default=TOP, help="check this tree")
    parser.add_argument("--update", action="store_true", help="record lower figures, and rooms that have none")
    parser.add_argument("--worst", type=int, default=3, help="sentences to print for each place that fails")
    parser.add_argument("--show", help="print every such sentence of this page or room")
    parser.add_argument("--table", action="store_true", help="print the figure of every place")
    options = parser.parse_args(arguments)
    file = options.top / "tests/lint/english.txt"
    bounds, found, counts = read_bounds(file), {}, {}
    for place, sentence in places(options.top):
        counts[place] = counts.get(place, 0) + 1
        turns = turns_in(sentence)
        if turns:
            found.setdefault(place, []).append((turns, sentence))
    if options.show:
        for turns, sentence in found.get(options.show, []):
            print(f"{sentence}\n    -> {'; '.join(turns)}")
        return 0
    percents = {place: 100 * len(found.get(place, [])) / counts[place] for place in counts}
    if options.table:
        for place in sorted(counts, key=lambda place: -percents[place]):
            print(f"{percents[place]:5.1f} %  {len(found.get(place, [])):4} of {counts[place]:4}  {place}")
    if options.update:
        rooms = {place: math.ceil(percent) for place, percent in percents.items() if not place.endswith(".md")}
        write_bounds(file, {place: min(percent, bounds.get(place, percent)) for place, percent in rooms.items()})
        bounds = read_bounds(file)
    failed = [place for place in counts if percents[place] > bounds.get(place, PAGE_MOST)]
    for place in failed:
        print(
            f"{place}: {percents[place]:.1f} % of {counts[place]} sentences, at most {bounds.get(place, PAGE_MOST)} %",
            file=sys.stderr,
        )
        for turns, sentence in sorted(found[place], key=lambda one: (-len(one[0]), -len(one[1])))[: options.worst]:
            print(f"    {sentence[:240]}\n        write {'; '.join(turns)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a person at a terminal sees while a model comes: one line with a bar, overwritten, and in the end the result alone."""

import re

import pytest
from containers import dense, pattern, zt1
from server_process import PROGRAM
from terminal import Screen, SlowLine, run_in_terminal

MODEL = zt1({"a": dense(pattern(6_000_000, seed=51), digest="sha256")})
NAME = "a model \x1b[2J of a long name, longer than any line has room for, with what would clear the screen.zt"
FIGURES = r": +(\d+) %{bar}, [\d.]+ [KM]?i?B of 5\.7 MiB, [\d.]+ [KM]?i?B/s(, \d:\d\d left)?"


@pytest.fixture
def line(start_server, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/m.zt").write_bytes(MODEL)
    made = SlowLine(start_server(tmp_path / "root").port, 3_000_000)
    yield made
    made.close()


def pulled(line, folder, columns, locale="C.UTF-8", name="m.zt"):
    screen = Screen(columns)
    status = run_in_terminal(screen, [PROGRAM, "pull", line.url + "/m", "-o", name], folder, {"LC_ALL": locale})
    assert status == 0, screen.rows
    assert (folder / name).read_bytes() == MODEL
    return screen


def lines_seen(screen):
    """All states of the line of progress."""
    return [rows[0] for _, rows in screen.frames if "%" in rows[0] and len(rows) == 1]


@pytest.mark.parametrize("columns, cells, locale, done, left", [(80, 6, "C.UTF-8", "█", "░"), (100, 12, "C.UTF-8", "█", "░"), (130, 20, "C", "#", ".")])  # fmt: skip
def test_a_bar_fills_as_the_bytes_come(line, tmp_path, columns, cells, locale, done, left):
    seen = lines_seen(pulled(line, tmp_path, columns, locale))
    percents = []
    for one in seen:
        match = re.fullmatch("pulling m.zt" + FIGURES.format(bar=rf" ([{done}{left}]{{{cells}}})"), one)
        assert match, one
        percents.append(int(match[1]))
        filled = percents[-1] * cells // 100
        assert match[2] == done * filled + left * (cells - filled)
    assert len(set(percents)) >= 3 and percents == sorted(percents)


def test_a_narrow_terminal_has_no_bar(line, tmp_path):
    seen = lines_seen(pulled(line, tmp_path, 79))
    assert seen and all(re.fullmatch("pulling m.zt" + FIGURES.format(bar=""), one) for one in seen)


@pytest.mark.parametrize("columns", [60, 30, 12])
def test_the_line_fits_a_narrow_terminal(line, tmp_path, columns):
    screen = pulled(line, tmp_path, columns)
    seen = [row for _, rows in screen.frames for row in rows if "%" in row]
    assert seen and all(len(row) < columns and re.search(r": +\d+ %", row) for row in seen)
    assert not any(len(rows) > 1 for _, rows in screen.frames if "%" in rows[-1])


def test_the_line_is_gone_in_the_end(line, tmp_path):
    screen = pulled(line, tmp_path, 100)
    assert screen.rows == [f"m.zt: {len(MODEL)} bytes; 1 object, 1 verified, 0 without digest", ""]


@pytest.mark.parametrize("columns", [80, 100])
def test_a_hostile_name_is_escaped_and_leaves_the_line_a_line(line, tmp_path, columns):
    screen = pulled(line, tmp_path, columns, name=NAME)
    seen = lines_seen(screen)
    assert seen and all(len(one) <= columns and one.startswith("pulling a model ") for one in seen)
    assert "".join(screen.rows).startswith("a model \\u001b[2J of a long name")

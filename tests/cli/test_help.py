"""The help of the program and of each command, and what a slip of the keyboard gets."""

import re

import pytest

COMMANDS = ["serve", "ls", "verify", "stats", "diff", "convert", "pull", "push", "token", "check-config", "healthcheck", "completion", "help"]


def test_the_overview_names_every_command_and_is_short(ztserve):
    result = ztserve("--help")
    assert (result.status, result.errors) == (0, "")
    assert [name for name in re.findall(r"^  ([a-z-]+) ", result.output, re.MULTILINE) if name in COMMANDS] == COMMANDS
    assert len(result.lines) <= 40
    assert ztserve("help").output == ztserve("-h").output == result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_of_its_own_with_two_examples(ztserve, command):
    result = ztserve(command, "--help")
    assert (result.status, result.errors) == (0, "")
    assert f"Usage: ztserve {command}" in result.output
    examples = result.output.split("\nExamples:\n")[1]
    assert len(re.findall(rf"^  \S.*ztserve .*{command}.*\n      \S|^  ztserve {command}.*\n      \S", examples, re.MULTILINE)) == 2
    assert max(len(line) for line in result.lines) <= 80
    assert ztserve("help", command).output == result.output
    others = [other for other in COMMANDS if other != command and f"Usage: ztserve {other}" in result.output]
    assert others == []


def test_a_short_h_is_help(ztserve):
    for arguments in (["ls", "-h"], ["verify", "a.zt", "-h"], ["serve", "-h"], ["check-config", "-h"]):
        result = ztserve(*arguments)
        assert (result.status, result.errors) == (0, "")
        assert f"Usage: ztserve {arguments[0]}" in result.output


def test_no_command_is_wrong_usage(refused):
    refused()


def test_an_unknown_command_is_named(refused):
    assert refused("frobnicate") == 'ztserve: there is no command "frobnicate" (see ztserve --help)\n'
    assert '"frobnicate"' in refused("help", "frobnicate")


@pytest.mark.parametrize("typed, meant", [("verfy", "verify"), ("lss", "ls"), ("covnert", "convert"), ("comp", "completion")])
def test_a_slip_in_a_command_names_the_nearest(refused, typed, meant):
    for arguments in ([typed], ["help", typed]):
        assert f'there is no command "{typed}"; did you mean "{meant}"?' in refused(*arguments)


@pytest.mark.parametrize(
    "line, meant",
    [
        ("ls --jsno a", "--json"),
        ("verify --canon a", "--canonical"),
        ("convert --zsdt=3 a b", "--zstd"),
        ("convert -quiet a b", "--quiet"),
        ("serve --rot a", "--root"),
        ("healthcheck --redy", "--ready"),
        ("check-config --hepl", "--help"),
    ],
)
def test_a_slip_in_an_option_names_the_nearest(refused, line, meant):
    assert f"unknown argument; did you mean {meant}?" in refused(*line.split())


def test_a_hint_leads_to_the_help_of_the_command(refused):
    assert refused("convert", "a").endswith("(see ztserve convert --help)\n")


@pytest.mark.parametrize("line", ["convert a b --to", "convert a b --to --zstd", "convert a b --progress", "healthcheck --config"])
def test_an_option_without_its_value_is_named(refused, line):
    assert ": needs a value" in refused(*line.split())


def test_a_value_that_an_option_does_not_take_is_refused(refused):
    assert "--quiet: takes no value" in refused("convert", "a", "b", "--quiet=1")
    assert "--progress fast: it must be auto, plain, json or none" in refused("convert", "a", "b.zt", "--progress", "fast")

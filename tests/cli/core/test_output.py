"""How tables and sentences are folded: between words, whatever the width."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from cdk_training_cluster_cli.core.output import Document, Table, json_text, print_table, show, terminal
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_file.problems import printable
from examples import PROJECT
from folding import folds_at_80_columns, words

_CELLS = st.text(alphabet="aä1/-,. ", max_size=40).map(lambda text: " ".join(text.split()))


@given(
    rows=st.integers(1, 9).flatmap(lambda width: st.lists(st.tuples(*[_CELLS] * width), min_size=2, max_size=4)),
    numbers=st.sets(st.integers(0, 8)),
    width=st.integers(20, 120),
)
def test_a_table_breaks_no_word_and_loses_none(rows: list[tuple[str, ...]], numbers: set[int], width: int) -> None:
    headings, *cells = rows
    written = StringIO()
    table = Table(
        title="",
        headings=headings,
        rows=tuple(cells),
        numbers=tuple(each for each in numbers if each < len(headings)),
    )
    print_table(Console(file=written, width=width, highlight=False), table)
    found, wanted = words(written.getvalue()), words(" ".join(" ".join(row) for row in rows))
    # Where rows stand below each other, each has the headings.
    assert found.keys() == wanted.keys()
    assert found >= wanted
    # A word that is longer than the line, or the headings beside it, is all that may stand out.
    room = max(width, max(map(len, ["", *wanted])) + max(map(len, headings)) + 3)
    assert [line for line in written.getvalue().splitlines() if len(line) > room] == []


@pytest.mark.parametrize(
    "command",
    [
        *(["check", f"clusters/{name}.yaml"] for name in ("prioritized", "spot", "spot-elastic")),
        ["plan", "clusters/p4de.yaml", "--all", "--parameters", "70e9", "--tokens", "1.4e12"],
        ["storage", "--dataset", "40TiB", "--gbps", "20", "--nodes", "8"],
    ],
    ids=" ".join,
)
def test_what_a_command_shows_fits_a_terminal(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folds_at_80_columns(lambda: CliRunner().invoke(training_cluster, command).stdout, monkeypatch)


def test_without_a_terminal_each_row_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    written = StringIO()
    monkeypatch.setattr(sys, "stdout", written)
    rows = ((" ".join(["word"] * 100), "1"), ("x", "2"))
    print_table(terminal(), Table(title="", headings=("a", "b"), rows=rows))
    assert len(written.getvalue().splitlines()) == 4


_CONTROLS = ("\x1b]0;x\x07", "\x9b2J", "\r\x08", "\u202e", "\u2028", "\u200b", "\x7f", "\U000e0001", "\udc80")


@pytest.mark.parametrize("text", _CONTROLS, ids=ascii)
def test_no_text_controls_the_terminal(text: str) -> None:
    values = {text: [f"a{text}"]}
    written = json_text(values)
    assert json.loads(written) == values
    assert all(line.isprintable() for line in (*written.splitlines(), printable(text)))


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_a_name_with_line_ends_makes_no_row_and_no_sentence(
    format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)

    def lines(end: str) -> int:
        table = Table(title=f"a{end}", headings=("Checkpoint", "Complete"), rows=((f"a{end}| step-9 | yes |", "no"),))
        show(format, Document(tables=(table,), notes=(("Problems", (f"a{end}- b",)),)), {})
        return len(capsys.readouterr().out.splitlines())

    assert lines("\n") == lines("")


@pytest.mark.parametrize("text", ["Ünï 日本 🚀", "1\u00a0234", "a\tb\nc"])
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    if "\n" not in text:
        assert text in json_text({"a": text})

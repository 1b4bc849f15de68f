"""Programs run in turn, and what their figures mean."""

import os
from pathlib import Path

import pytest

from benchmarks.measuring import FailedError, Program, Run, Runs, environment, in_turn


def _runs(*seconds: float) -> Runs:
    return Runs([Run(seconds=each, cpu_seconds=2 * each, peak_mib=100 + each) for each in seconds])


def _appends(letter: str, file: Path) -> Program:
    return Program(arguments=("-c", f"open({str(file)!r}, 'a').write({letter!r})"), environment=os.environ)


def test_programs_take_turns_and_the_first_turn_does_not_count(tmp_path: Path) -> None:
    order, told = tmp_path / "order", list[int]()
    measured = in_turn({"a": _appends("a", order), "b": _appends("b", order)}, 2, told.append)
    assert order.read_text() == "ababab"
    assert told == [0, 1, 2]
    assert {name: len(runs.runs) for name, runs in measured.items()} == {"a": 2, "b": 2}


def test_time_of_a_process_and_of_those_it_starts_is_counted() -> None:
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10_000_000))'])"
    run = Program(arguments=("-c", busy), environment=os.environ).run()
    assert run.cpu_seconds > 0.05
    assert run.seconds > 0.05
    assert run.peak_mib > 1


def test_a_program_that_fails_is_told_with_what_it_said() -> None:
    with pytest.raises(FailedError, match="no such cluster"):
        Program(arguments=("-c", "raise SystemExit('no such cluster')"), environment=os.environ).run()


def test_figures_are_medians_the_least_and_the_peak() -> None:
    assert _runs(1, 9, 2).figures() == {"seconds": 2, "least_seconds": 1, "cpu_seconds": 4, "peak_mib": 109}


def test_ratios_are_of_medians_and_of_turns() -> None:
    # In the second turn the machine was busy with something else: both took longer.
    library, typed = _runs(1.2, 12, 1.3), _runs(1, 10, 1)
    assert library.beside(typed) == {"ratio": 1.3, "ratio_of_turns": 1.2, "cpu_ratio": 1.3}


def test_modules_are_compiled_once_and_validation_is_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    variables = environment(tmp_path, '{"cluster": "pod.yaml"}')
    assert "PYTHONDONTWRITEBYTECODE" not in variables
    assert variables["CDK_VALIDATION"] == "false"
    assert variables["CDK_OUTDIR"] == str(tmp_path)
    assert variables["CDK_CONTEXT_JSON"] == '{"cluster": "pod.yaml"}'

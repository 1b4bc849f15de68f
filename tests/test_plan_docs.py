"""What README and docs/plan.md show of `training-cluster plan` is what it says."""

import re
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdk_training_cluster_cli.main import training_cluster
from examples import PROJECT

_COLUMNS = "110"
_SHOWN = [
    (document, command, shown)
    for document in ("README.md", "docs/plan.md")
    for block in re.findall(r"^```console\n(.*?)^```", (PROJECT / document).read_text(), re.DOTALL | re.MULTILINE)
    for command, shown in re.findall(
        r"^\$ training-cluster (plan [^\n]*)\n(.*?)(?=^\$|\Z)", block, re.DOTALL | re.MULTILINE
    )
]


@pytest.fixture(autouse=True)
def without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(PROJECT)


@cache
def said(command: str) -> list[str]:
    result = CliRunner(env={"COLUMNS": _COLUMNS}).invoke(training_cluster, command.split())
    assert result.exit_code == 0, result.stderr
    return [line.rstrip() for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("document", "command", "shown"), _SHOWN, ids=[f"{d}-{n}" for n, (d, _, _) in enumerate(_SHOWN)]
)
def test_what_a_document_shows_is_what_the_command_says(document: str, command: str, shown: str) -> None:
    lines = said(command)
    assert [line for line in shown.splitlines() if line not in lines] == [], document
    assert shown.strip()


def test_both_documents_show_it() -> None:
    assert {document for document, _, _ in _SHOWN} == {"README.md", "docs/plan.md"}


def test_the_module_s_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", (PROJECT / "docs/plan.md").read_text(), re.DOTALL | re.MULTILINE)
    exec(compile(code, "docs/plan.md", "exec"), {})  # noqa: S102 - our own document
    total, keys = capsys.readouterr().out.split(maxsplit=1)
    assert Decimal(total) > 70_000
    assert keys == f"{['storage.dataset', 'transfer.nat-data']}\n"

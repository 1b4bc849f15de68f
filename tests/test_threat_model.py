"""Each row of the threat model in docs/security.md names what demonstrates it, and each test that it names exists."""

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_ACTORS = ("job", "Slurm user", "pod", "operator", "bucket writer", "tag writer")


def _rows() -> list[list[str]]:
    section = (_ROOT / "docs" / "security.md").read_text().partition("## Threat model\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_each_row_names_a_test_that_exists_or_the_text_that_states_the_rule() -> None:
    tests = {
        node.name
        for file in (*(_ROOT / "tests").rglob("test_*.py"), *(_ROOT / "local_aws").rglob("test_*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    for who, action, result, proof in _rows():
        named = re.findall(r"`(test_\w+)`", proof)
        assert set(named) <= tests, (who, action, set(named) - tests)
        # What is refused is shown by a test of this library, or by the document of the service that refuses it.
        assert named or "](" in proof, (who, action)
        assert result.startswith(("refused", "possible")), (who, action, result)


def test_each_actor_has_what_it_can_do_and_what_it_cannot() -> None:
    for actor in _ACTORS:
        results = [result.split()[0].strip(":,") for who, _, result, _ in _rows() if who.startswith(actor)]
        assert {"refused", "possible"} == set(results), actor

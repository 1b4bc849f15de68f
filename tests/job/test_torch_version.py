"""The one version of torch that the package names: that of the tests, and the one that the documents promise."""

import re
from pathlib import Path

import pytest

from cluster_job.torch_version import TESTED_SERIES, TESTED_TORCH, untested_torch

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"__version__ = '{TESTED_TORCH}+cpu'\n", ""),
        (f"__version__ = '{TESTED_SERIES}.9'\n", ""),
        ("__version__ = '2.7.1+cu128'\n", "torch 2.7.1+cu128 is not tested: if the job fails to start or to restart"),
        (f"__version__ = '{TESTED_SERIES}1.0'\n", f"torch {TESTED_SERIES}1.0 is not tested: if the job fails"),
        ("debug = False\n", ""),
        (None, ""),
    ],
)
def test_another_version_of_torch_is_named(tmp_path: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "version.py").write_text(text)
    assert untested_torch(tmp_path).startswith(sentence)
    assert bool(untested_torch(tmp_path)) is bool(sentence)


@pytest.mark.parametrize("page", ["docs/resilience/jobs.md", "job/README.md"])
def test_the_documents_promise_the_tested_version_only(page: str) -> None:
    versions = set(re.findall(r"\btorch (\d+\.\d+)", (_ROOT / page).read_text()))
    assert versions == {TESTED_SERIES}


def test_make_installs_the_tested_version() -> None:
    makefile = (_ROOT / "Makefile").read_text()
    assert "job/cluster_job/torch_version.py" in makefile
    assert not re.search(r"torch==\d", makefile)

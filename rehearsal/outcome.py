"""How a rehearsal ends: its results in a file, its verdict in a sentence, and an exit status."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from cdk_training_cluster_file.problems import ClusterFileError, plain_errors
from local_aws import LocalAwsError
from local_aws.functions import FunctionFailedError
from rehearsal import report
from rehearsal.cdk_cli import CdkFailedError

# What can go wrong without a defect in the rehearsal; anything else keeps its traceback.
_FORESEEN = (LocalAwsError, ClientError, BotoCoreError, TimeoutExpired, CdkFailedError, FunctionFailedError)


@dataclass
class Findings:
    """What a rehearsal finds while it runs.

    Attributes:
        results: What is written to the results file.
        differences: What is not as the cluster file says, a sentence each.
        not_rehearsed: What the rehearsal left out, and why.
    """

    results: dict[str, Any] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    not_rehearsed: list[str] = field(default_factory=list)


def conduct(rehearse: Callable[[Findings], None], results: Path, console: Console) -> int:
    """Run a rehearsal and return the exit status: 0 if it passed, 1 if anything differs or fails.

    The results file is written however the rehearsal ends, with a `status` of `passed`, `differs` or `failed`.

    Args:
        rehearse: The rehearsal.
        results: The results file.
        console: Where the verdict is shown.
    """
    findings = Findings()
    # Nothing of an earlier rehearsal may be taken for this one's.
    results.unlink(missing_ok=True)
    error: str | None = "the rehearsal was cut off by a defect of its own or by its user"
    try:
        rehearse(findings)
        error = None
    except ClusterFileError as wrong:
        error = str(wrong)
        with suppress(SystemExit), plain_errors():
            raise
    except _FORESEEN as failure:
        error = _sentence(failure)
        report.show_failure(console, error)
    finally:
        verdict = "failed" if error is not None else "differs" if findings.differences else "passed"
        _write(results, {"status": verdict, "error": error, **_told(findings)})
    report.show_not_rehearsed(console, findings.not_rehearsed)
    report.show_differences(console, findings.differences, finished=error is None)
    return 0 if verdict == "passed" else 1


def _told(findings: Findings) -> dict[str, Any]:
    left_out = {"not_rehearsed": findings.not_rehearsed} if findings.not_rehearsed else {}
    return {"differences": findings.differences, **left_out, **findings.results}


def _write(file: Path, results: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=2, default=str) + "\n", encoding="utf-8")


def _sentence(failure: Exception) -> str:
    if isinstance(failure, TimeoutExpired):
        return f"{failure.cmd} did not end within {failure.timeout:g} s"
    # Whatever a service or a tool put into its message, it is one line here.
    return " ".join(str(failure).split())

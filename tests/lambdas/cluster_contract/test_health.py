import ast
import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster_contract import health
from cluster_contract.faults import FaultAction, FaultKind
from cluster_contract.health import (
    NodeReport,
    ReportedCheck,
    ReportedFault,
    ReportKind,
)

REPORT = NodeReport(
    cluster="llama",
    node_group="workers",
    instance_id="i-0a1b2c3d4e5f67890",
    boot_id="5d7c",
    kind=ReportKind.FAULT,
    at=datetime(2026, 11, 2, 14, 2, 5, tzinfo=UTC),
    faults=(
        ReportedFault(
            code="79",
            kind=FaultKind.XID,
            action=FaultAction.REBOOT,
            device="0000:53:00",
            count=1,
            sentence="The GPU has fallen off the bus",
            serial="1652923000001",
        ),
    ),
    serials=("1652923000001",),
    checks=(ReportedCheck(name="gpus", passed=False, found="7", floor="8"),),
    deadline=datetime(2026, 11, 2, 14, 4, 5, tzinfo=UTC),
    provisional=True,
    sentence="EC2 terminates it",
)
GIVEN = json.loads(REPORT.to_json())


def test_a_report_reads_as_it_was_written_and_without_what_a_newer_node_adds() -> None:
    assert NodeReport.from_json(REPORT.to_json()) == REPORT
    assert NodeReport.from_json({**GIVEN, "colour": "red"}) == REPORT


def test_what_a_node_need_not_say_has_defaults() -> None:
    names = ("cluster", "node_group", "instance_id", "boot_id", "kind", "at")
    bare = NodeReport.from_json({name: GIVEN[name] for name in names})
    assert bare == dataclasses.replace(
        REPORT, faults=(), serials=(), checks=(), deadline=None, provisional=False, sentence=""
    )


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "gossip"},
        {"at": "today"},
        {"at": None},
        {"instance_id": ""},
        {"boot_id": 7},
        {"faults": [{"code": "79"}]},
        {"faults": ["79"]},
        {"faults": [{"code": "79", "kind": "xid", "action": "explode"}]},
        {"checks": [{"name": "gpus"}]},
        {"deadline": "soon"},
    ],
)
def test_what_is_no_report_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"report|not a valid|does not match"):
        NodeReport.from_json({**GIVEN, **change})


@pytest.mark.parametrize("detail", ["[]", "null", "{}", "{"])
def test_other_texts_are_refused(detail: str) -> None:
    with pytest.raises(ValueError, match=r"report|Expecting"):
        NodeReport.from_json(detail)


def test_nodes_can_run_it_with_python_3_9() -> None:
    ast.parse(Path(str(health.__file__)).read_text(), feature_version=(3, 9))

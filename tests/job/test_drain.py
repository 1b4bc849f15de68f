"""Which request of a drained node counts, and what a broken file means."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster_job.drain import DrainRequest, drain_request

SPOT = "EC2 takes the node back\n" + '{"code": "spot", "deadline": "2026-11-23T07:30:00Z"}'
XID = "GPU 3 reports Xid 79\n" + '{"code": "xid-79", "deadline": null}'
LOCAL = "x\n" + '{"deadline": "2026-11-23T07:31:00"}'


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({".new": SPOT}, None),
        ({"xid-79": XID}, DrainRequest(code="xid-79", sentence="GPU 3 reports Xid 79", deadline=None)),
        (
            {"spot": SPOT, "a": XID, "b": LOCAL},
            DrainRequest(
                code="spot",
                sentence="EC2 takes the node back",
                deadline=datetime(2026, 11, 23, 7, 30, tzinfo=UTC),
            ),
        ),
        ({"x": ""}, DrainRequest(code="x", sentence="x drains the node", deadline=None)),
        ({"x": "y\n{"}, DrainRequest(code="x", sentence="x drains the node", deadline=None)),
    ],
)
def test_the_request_that_ends_first_counts(
    tmp_path: Path, files: dict[str, str], found: DrainRequest | None
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert drain_request(tmp_path) == found


def test_a_node_without_the_folder_is_not_drained(tmp_path: Path) -> None:
    assert drain_request(tmp_path / "none") is None

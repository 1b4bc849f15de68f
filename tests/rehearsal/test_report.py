"""What a person sees: every name and reason as it is, and whole in a terminal of 80 columns."""

import io
from typing import Any

import pytest

from rehearsal import report

_CURIOUS = "[red]gone[/x] :smile: [bold]"


def _shown(show: Any, *arguments: Any, **named: Any) -> str:
    file = io.StringIO()
    show(report.make_console(file, width=80), *arguments, **named)
    return file.getvalue()


def _found(**group: Any) -> dict[str, Any]:
    workers = {
        "name": "workers",
        "instance_type": "p6-b300.48xlarge",
        "count_running": 2,
        "network_interfaces": 17,
        "efa_interfaces": 16,
        "market": "on-demand",
        "placement_group": "pod-cluster-TrainingClusterNodeGroupsworkersPlacementGroup0974A58F-A1tom4i10nXR",
        "bought_from": {"cr-0a1b2c3d4e5f67890": 1, "on-demand": 1},
        "reservation": None,
        "spot_fleet": None,
        "warm_pool": None,
    }
    return {
        "node_groups": [{**workers, **group}],
        "file_system": {
            "id": "fs-0c12fb90c2a0395a6",
            "type": "LUSTRE",
            "deployment_type": "PERSISTENT_2",
            "data_compression": "LZ4",
            "storage_capacity_gib": 4800,
            "throughput_mbps_per_tib": 250,
            "lifecycle": "AVAILABLE",
        },
        "datasets": [
            {
                "file_system_path": "/data",
                "data_repository_path": f"s3://b/{_CURIOUS}",
                "objects": 3,
                "lifecycle": "A",
            }
        ],
        "stacks": {"pod": {"status": _CURIOUS, "resources": {"A": 2}, "termination_protection": True}},
    }


@pytest.mark.parametrize("sentence", [_CURIOUS, "an image id '[ami-0a1b2c3d4e5f67890]' that does not exist"])
def test_nothing_is_read_as_markup(sentence: str) -> None:
    assert f"failed: {sentence}\n" == _shown(report.show_failure, sentence)
    assert f"differs: {sentence}\n" == _shown(report.show_differences, [sentence], finished=True)
    assert sentence in _shown(report.show_kept, {"buckets": [sentence]}, {"buckets": ["[b]"]})
    assert "As it was before: [b]" in _shown(report.show_kept, {}, {"buckets": ["[b]"]})
    file = io.StringIO()
    report.make_console(file, width=200).print(sentence)
    assert file.getvalue() == f"{sentence}\n"


def test_tables_show_values_in_brackets() -> None:
    shown = _shown(report.show_deployed, _found(market="[spot]"))
    assert "[spot]" in shown
    assert f"s3://b/{_CURIOUS}" in shown
    assert f"│ pod  │ {_CURIOUS} │" in shown


def test_names_and_types_are_whole_in_80_columns() -> None:
    lines = _shown(report.show_deployed, _found()).splitlines()
    (row,) = [line for line in lines if "p6-b300.48xlarge" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")][:6] == [
        *("workers", "p6-b300.48xlarge", "2", "17", "16", "on-demand"),
    ]
    assert max(map(len, lines)) <= 80


def test_what_was_bought_is_shown_for_each_group() -> None:
    made = {"id": "cr-1", "instances": 8, "ends": None}
    found = _found(reservation=made, spot_fleet="sfr-1", warm_pool={"size": 2, "states": {"Warmed:Stopped": 1}})
    row = _row_of(found, "What was bought")
    assert row == [
        "workers",
        "Spot Fleet sfr-1",
        "1 cr-0a1b2c3d4e5f67890, 1 on-demand",
        "8, until cancelled",
        "up to 2, now 1 Warmed:Stopped",
    ]
    found = _found(reservation={**made, "ends": "2026-12-24T17:00:00+00:00"}, bought_from={})
    row = _row_of(found, "What was bought")
    assert row == ["workers", "Auto Scaling group", "-", "8, until 2026-12-24T17:00:00+00:00", "-"]


def _row_of(found: dict[str, Any], title: str) -> list[str]:
    """Return the cells of the one row of a table, wide enough to fold nothing."""
    file = io.StringIO()
    report.show_deployed(report.make_console(file, width=200), found)
    lines = file.getvalue().splitlines()
    start = lines.index(next(line for line in lines if line.startswith(title)))
    (row,) = [line for line in lines[start : start + 6] if line.startswith("│")]
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_a_long_id_is_folded_and_loses_nothing() -> None:
    found = _found()
    lines = _shown(report.show_deployed, found).splitlines()
    start = next(at for at, line in enumerate(lines) if "workers" in line)
    end = next(at for at, line in enumerate(lines) if line.startswith("└"))
    folded = "".join(line.strip("│").split("│")[-1].strip() for line in lines[start:end])
    assert folded == found["node_groups"][0]["placement_group"]


def test_all_is_well_only_when_everything_was_seen() -> None:
    assert _shown(report.show_differences, [], finished=True) == "Everything is as the cluster file says.\n"
    assert _shown(report.show_differences, [], finished=False) == ""

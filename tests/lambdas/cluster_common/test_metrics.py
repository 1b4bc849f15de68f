import json

import pytest
from aws_lambda_powertools.metrics import MetricUnit

from cluster_common.metrics import emit, emit_counts


def test_counts_are_written_with_exactly_the_dimensions_that_alarms_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit_counts({"MissingNodes": 3, "RunningNodes": 5}, Cluster="base-pod", NodeGroup="workers")

    written = json.loads(capsys.readouterr().out)
    assert written["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": "CdkTrainingCluster/Functions",
            "Dimensions": [["Cluster", "NodeGroup"]],
            "Metrics": [
                {"Name": "MissingNodes", "Unit": "Count"},
                {"Name": "RunningNodes", "Unit": "Count"},
            ],
        }
    ]
    del written["_aws"]
    assert written == {
        "Cluster": "base-pod",
        "NodeGroup": "workers",
        "MissingNodes": [3.0],
        "RunningNodes": [5.0],
    }


def test_one_set_of_dimensions_does_not_leak_into_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    emit_counts({"A": 1}, Cluster="base-pod", NodeGroup="workers")
    emit_counts({"B": 2}, Cluster="base-pod")

    second = json.loads(capsys.readouterr().out.splitlines()[1])
    assert second.keys() == {"_aws", "Cluster", "B"}


def test_what_is_no_count_has_a_unit_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"DollarsSaved": 55.04}, MetricUnit.NoUnit, Cluster="base-pod")

    written = json.loads(capsys.readouterr().out)
    assert written["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "DollarsSaved", "Unit": "None"}]
    assert written["DollarsSaved"] == [55.04]

"""The sweep's server answers as AWS does: botocore reads what it says."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from benchmarks.sweep.fleet import METRIC, NAMESPACE, NOTE, PERIOD, Fleet, Part, index_of, instance_id
from benchmarks.sweep.goals import RE_READ
from benchmarks.sweep.server import Server

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.client import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef, MetricDataResultTypeDef
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

_FIRST = instance_id(0)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def fleet(server: Server) -> Fleet:
    server.put_fleet(60)
    return server.cloud.fleet


def _client(server: Server, name: Any) -> Any:
    return boto3.client(
        name,
        endpoint_url=f"http://localhost:{server.server_port}",
        region_name="us-east-1",
        aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
        aws_secret_access_key="none",  # noqa: S106 - opens nothing
    )


@pytest.fixture(scope="module")
def ec2(server: Server) -> "EC2Client":
    client: EC2Client = _client(server, "ec2")
    return client


@pytest.fixture(scope="module")
def cloudwatch(server: Server) -> "CloudWatchClient":
    client: CloudWatchClient = _client(server, "cloudwatch")
    return client


def _read(ec2: "EC2Client", *ids: str) -> "list[InstanceTypeDef]":
    answer = ec2.describe_instances(InstanceIds=ids)
    return [instance for reservation in answer["Reservations"] for instance in reservation.get("Instances", [])]


def _tags(ec2: "EC2Client", one: str) -> dict[str, str]:
    (instance,) = _read(ec2, one)
    return {tag.get("Key", ""): tag.get("Value", "") for tag in instance.get("Tags", [])}


def test_pages_hold_every_instance_once(server: Server, ec2: "EC2Client", fleet: Fleet) -> None:
    pages = list(ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 25}))
    assert [len(page["Reservations"]) for page in pages] == [25, 25, 10]
    instances = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    assert [one["InstanceId"] for one in instances] == [instance_id(index) for index in range(fleet.size)]
    assert len({interface["NetworkInterfaceId"] for one in instances for interface in one["NetworkInterfaces"]}) == (
        33 * fleet.size
    )
    assert "{" not in str(instances[-1]).replace("{'", "")
    assert server.cloud.requests == {"DescribeInstances": 3}


def test_an_instance_is_a_p5(ec2: "EC2Client", fleet: Fleet) -> None:
    (instance,) = _read(ec2, instance_id(59))
    assert instance["InstanceType"] == "p5.48xlarge"
    assert instance["State"] == {"Code": 16, "Name": "running"}
    assert instance["RootDeviceType"] == "ebs"
    assert instance["PrivateIpAddress"] == "10.0.0.59"
    assert instance["LaunchTime"] == fleet.launched.replace(microsecond=0)
    interfaces = instance["NetworkInterfaces"]
    assert [one["InterfaceType"] for one in interfaces] == ["interface", *["efa-only"] * 32]
    assert [one["Attachment"]["NetworkCardIndex"] for one in interfaces] == [0, *range(32)]


def test_only_what_is_due_was_warned_of(server: Server, ec2: "EC2Client", fleet: Fleet) -> None:
    due, idle = fleet.ids(Part.DUE)[0], fleet.ids(Part.IDLE)[0]
    items = _client(server, "dynamodb").query(TableName="state", KeyConditionExpression="any")["Items"]
    assert [item["name"]["S"] for item in items] == fleet.ids(Part.DUE)
    assert datetime.fromisoformat(items[0]["stop_at"]["S"]) < datetime.now(UTC)
    assert [NOTE in _tags(ec2, one) for one in (due, idle)] == [True, False]


def test_instances_are_looked_at_again_by_their_ids(server: Server, ec2: "EC2Client") -> None:
    ids = [instance_id(index) for index in (7, 51)]
    assert [one["InstanceId"] for one in _read(ec2, *ids)] == ids
    filters: Any = [{"Name": "tag:a", "Values": ["b"]}, {"Name": "instance-id", "Values": ids}]
    answer = ec2.describe_instances(Filters=filters, MaxResults=200)
    assert [reservation["Instances"][0]["InstanceId"] for reservation in answer["Reservations"]] == ids
    assert "NextToken" not in answer
    assert server.cloud.requests == {RE_READ: 2}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"InstanceIds": [_FIRST, instance_id(60)]}, "InvalidInstanceID.NotFound"),
        ({"InstanceIds": [_FIRST], "MaxResults": 5}, "InvalidParameterCombination"),
    ],
)
def test_what_ec2_refuses_is_refused(request_: Any, code: str, ec2: "EC2Client") -> None:
    with pytest.raises(ClientError) as refused:
        ec2.describe_instances(**request_)
    assert refused.value.response["Error"]["Code"] == code


def test_what_is_stopped_stops(server: Server, ec2: "EC2Client") -> None:
    (change,) = ec2.stop_instances(InstanceIds=[_FIRST])["StoppingInstances"]
    assert (change["InstanceId"], change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (
        _FIRST,
        "running",
        "stopping",
    )
    assert [one["State"]["Name"] for one in _read(ec2, _FIRST, instance_id(1))] == ["stopping", "running"]
    assert len(server.cloud.stopped) == 1


def test_tags_are_written_and_taken_away(server: Server, ec2: "EC2Client", fleet: Fleet) -> None:
    idle = fleet.ids(Part.IDLE)
    ec2.create_tags(Resources=idle, Tags=[{"Key": NOTE, "Value": "now & here"}])
    assert _tags(ec2, idle[0])[NOTE] == "now & here"
    assert server.cloud.warned == len(idle)
    ec2.delete_tags(Resources=idle, Tags=[{"Key": NOTE}])
    assert _tags(ec2, idle[0]) == fleet.tags(index_of(idle[0]))
    assert server.cloud.warned == 0


def _query(instance: str, metric: str = METRIC) -> "MetricDataQueryTypeDef":
    return {
        "Id": f"m{index_of(instance)}",
        "MetricStat": {
            "Metric": {
                "Namespace": NAMESPACE,
                "MetricName": metric,
                "Dimensions": [{"Name": "InstanceId", "Value": instance}],
            },
            "Period": 300,
            "Stat": "Maximum",
        },
    }


def _series(
    cloudwatch: "CloudWatchClient", *queries: "MetricDataQueryTypeDef", **more: Any
) -> "list[MetricDataResultTypeDef]":
    now = datetime.now(UTC)
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=queries, StartTime=now - timedelta(hours=1), EndTime=now, **more
    )
    return answer["MetricDataResults"]


def test_series_are_as_busy_as_the_instances(cloudwatch: "CloudWatchClient", fleet: Fleet) -> None:
    ids = [fleet.ids(part)[0] for part in (Part.BUSY, Part.DUE, Part.IDLE, Part.SILENT)]
    series = _series(cloudwatch, *map(_query, ids))
    assert [one["Id"] for one in series] == [f"m{index_of(each)}" for each in ids]
    assert [sorted(set(one["Values"])) for one in series] == [[93.0], [0.0], [0.0], []]
    assert {one["StatusCode"] for one in series} == {"Complete"}
    assert all(len(one["Timestamps"]) == len(one["Values"]) for one in series)


def test_points_are_full_periods_up_to_now(cloudwatch: "CloudWatchClient") -> None:
    now = datetime.now(UTC)
    (newest_first,) = _series(cloudwatch, _query(_FIRST))
    (oldest_first,) = _series(cloudwatch, _query(_FIRST), ScanBy="TimestampAscending")
    times = oldest_first["Timestamps"]
    assert newest_first["Timestamps"] == times[::-1]
    assert [later - earlier for earlier, later in pairwise(times)] == [PERIOD] * (len(times) - 1)
    assert len(times) in (11, 12)
    # A period may end between the two looks at the clock.
    assert now - 2 * PERIOD - timedelta(seconds=5) <= times[-1] <= now - PERIOD + timedelta(seconds=5)


def test_other_metrics_have_no_points(cloudwatch: "CloudWatchClient") -> None:
    assert [one["Values"] for one in _series(cloudwatch, _query(_FIRST, "CPUUtilization"))] == [[]]


def test_the_other_services_have_nothing(server: Server) -> None:
    assert _client(server, "ec2").describe_spot_instance_requests()["SpotInstanceRequests"] == []
    assert _client(server, "autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert _client(server, "sns").publish(TopicArn="arn:aws:sns:us-east-1:123456789012:a", Message="m")["MessageId"]
    topic = _client(server, "sns").get_topic_attributes(TopicArn="arn:aws:sns:us-east-1:123456789012:a")
    assert topic["Attributes"] == {"SubscriptionsConfirmed": "1"}
    assert _client(server, "lambda").invoke(FunctionName="power")["Payload"].read() == b"{}"
    assert server.cloud.requests == {
        "DescribeAutoScalingGroups": 1,
        "DescribeSpotInstanceRequests": 1,
        "GetTopicAttributes": 1,
        "Invoke": 1,
        "Publish": 1,
    }


@pytest.mark.filterwarnings("ignore:Exception.Refusal. with code NotInTheSweep")
def test_what_the_server_does_not_know_is_told(server: Server) -> None:
    with pytest.raises(ClientError, match="the sweep's server cannot do ListTopics of sns"):
        _client(server, "sns").list_topics()


def test_an_answer_waits_for_the_delay(server: Server, ec2: "EC2Client", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "delay", 0.03)
    started = time.monotonic()
    _read(ec2, _FIRST)
    assert time.monotonic() - started >= 0.03

"""Pages of DescribeInstances as botocore parses them, without the interfaces, which no function reads."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cluster_common.pages import without_interfaces
from cluster_idle.instances import parse_instance
from idle_function_settings import Group, idle_settings

SETTINGS = idle_settings(groups={"workers": Group()})

INTERFACE = """
<item>
  <networkInterfaceId>eni-{number:08x}</networkInterfaceId>
  <description>a &lt;networkInterfaceSet&gt; of its own</description>
  <groupSet><item><groupId>sg-1</groupId></item></groupSet>
  <attachment><attachmentId>eni-attach-1</attachmentId><deviceIndex>{number}</deviceIndex></attachment>
  <privateIpAddressesSet><item><privateIpAddress>10.0.0.{number}</privateIpAddress></item></privateIpAddressesSet>
</item>
"""

INSTANCE = """
<item>
  <instanceId>i-{number:08x}</instanceId>
  <instanceType>p5.48xlarge</instanceType>
  <launchTime>2026-11-02T08:00:00.000Z</launchTime>
  <instanceState><code>16</code><name>running</name></instanceState>
  <rootDeviceType>ebs</rootDeviceType>
  {interfaces}
  <instanceLifecycle>capacity-block</instanceLifecycle>
  <capacityReservationId>cr-1</capacityReservationId>
  <hibernationOptions><configured>true</configured></hibernationOptions>
  <operator><managed>false</managed></operator>
  <tagSet>
    <item><key>cdk-training-cluster:node-group</key><value>workers</value></item>
    <item><key>aws:autoscaling:groupName</key><value>workers-asg</value></item>
    <item><key>cdk-training-cluster:keep-until</key><value>2026-11-30</value></item>
    <item><key>note</key><value>a &lt;networkInterfaceSet&gt; of mine</value></item>
  </tagSet>
</item>
"""


def page(*interfaces: str) -> str:
    """Return a page with an instance for each text of interfaces."""
    instances = "".join(INSTANCE.format(number=number, interfaces=one) for number, one in enumerate(interfaces))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId>'
        f"<reservationSet><item><reservationId>r-1</reservationId><instancesSet>{instances}</instancesSet></item>"
        "</reservationSet><nextToken>more</nextToken></DescribeInstancesResponse>"
    )


def interfaces(count: int) -> str:
    every = "".join(INTERFACE.format(number=number) for number in range(count))
    return f"<networkInterfaceSet>{every}</networkInterfaceSet>"


class Endpoint:
    """An endpoint of EC2 that answers each request with the same text.

    Attributes:
        status: The HTTP status.
        body: The text.
    """

    def __init__(self) -> None:
        self.status, self.body = 200, ""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                body = endpoint.body.encode()
                self.send_response(endpoint.status)
                self.send_header("Content-Type", "text/xml;charset=UTF-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def client(self) -> Any:
        url = f"http://127.0.0.1:{self.server.server_port}"
        return boto3.client("ec2", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}))


@pytest.fixture(scope="module")
def serving() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    thread.join()
    endpoint.server.server_close()


@pytest.fixture
def endpoint(serving: Endpoint) -> Endpoint:
    serving.status = 200
    return serving


@pytest.fixture(scope="module")
def whole(serving: Endpoint) -> Any:
    return serving.client()


@pytest.fixture(scope="module")
def cut(serving: Endpoint) -> Any:
    return without_interfaces(serving.client())


def described(client: Any) -> list[Any]:
    answer = client.describe_instances()
    assert answer["NextToken"] == "more"
    (reservation,) = answer["Reservations"]
    return list(reservation["Instances"])


@pytest.mark.parametrize(
    "each",
    [
        [interfaces(33)],
        [interfaces(1), interfaces(33), interfaces(2)],
        [interfaces(0), interfaces(3)],
        ["<networkInterfaceSet/>", interfaces(2), ""],
        ["", ""],
    ],
)
def test_all_but_the_interfaces_is_as_it_was(endpoint: Endpoint, whole: Any, cut: Any, each: list[str]) -> None:
    endpoint.body = page(*each)
    expected = described(whole)

    found = described(cut)

    assert [len(one.get("NetworkInterfaces", [])) for one in expected] == [
        one.count("<networkInterfaceId>") for one in each
    ]
    assert not any(one.pop("NetworkInterfaces", []) for one in found)
    for one in expected:
        one.pop("NetworkInterfaces", None)
    assert found == expected
    assert [parse_instance(one, SETTINGS) for one in found] == [parse_instance(one, SETTINGS) for one in expected]


def test_what_is_read_of_a_page_is_what_it_says(endpoint: Endpoint, cut: Any) -> None:
    endpoint.body = page(interfaces(33))
    (raw,) = described(cut)

    instance = parse_instance(raw, SETTINGS)

    assert (instance.id, instance.node_group, instance.owner.id) == ("i-00000000", "workers", "workers-asg")
    assert (instance.reserved, instance.hibernates) == ("the Capacity Block cr-1", True)
    assert instance.keep_tags.keep_until == "2026-11-30"


def test_an_error_is_the_same_error(endpoint: Endpoint, whole: Any, cut: Any) -> None:
    endpoint.status = 400
    endpoint.body = (
        "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized</Message></Error>"
        "</Errors><RequestID>r-1</RequestID></Response>"
    )
    errors = []
    for client in (whole, cut):
        with pytest.raises(ClientError) as caught:
            client.describe_instances()
        errors.append(caught.value.response["Error"])

    assert errors[0] == errors[1] == {"Code": "UnauthorizedOperation", "Message": "You are not authorized"}


def test_other_operations_are_left_alone(endpoint: Endpoint, cut: Any) -> None:
    every = "".join(INTERFACE.format(number=number) for number in range(3))
    endpoint.body = (
        '<DescribeNetworkInterfacesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        f"<networkInterfaceSet>{every}</networkInterfaceSet></DescribeNetworkInterfacesResponse>"
    )

    assert len(cut.describe_network_interfaces()["NetworkInterfaces"]) == 3


def test_a_client_may_be_given_twice(endpoint: Endpoint, cut: Any) -> None:
    endpoint.body = page(interfaces(3))

    assert without_interfaces(cut) is cut
    assert described(cut)[0].get("NetworkInterfaces", []) == []

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_common.owners.groups import Activity, OwnedNode
from cluster_common.owners.kinds import OWNER_KINDS, SPOT_FLEET
from cluster_common.power_records import Record, State
from cluster_power.groups import Group
from cluster_power.launch_failures import LAUNCH_FAILURES, ProblemKind, find_launch_failure
from cluster_power.problems import Outlook, find_problem, find_surplus

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
SIZED = NOW - timedelta(hours=1)
GRACE = timedelta(minutes=10)

# As Auto Scaling reports them: with EC2's code, or with its sentence only.
MESSAGES = [
    (
        ProblemKind.NO_CAPACITY,
        "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have "
        "sufficient "
        "p4de.24xlarge capacity in the Availability Zone you requested (us-east-1b).",
    ),
    (
        ProblemKind.NO_CAPACITY,
        "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested "
        "(us-east-1b). Launching EC2 instance failed.",
    ),
    (ProblemKind.NO_CAPACITY, "There is no Spot capacity available that matches your request."),
    (
        ProblemKind.QUOTA,
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance "
        "bucket "
        "that the specified instance type belongs to. Launching EC2 instance failed.",
    ),
    (ProblemKind.QUOTA, "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more."),
    (ProblemKind.QUOTA, "Max spot instance count exceeded. Launching EC2 instance failed."),
    (
        ProblemKind.NOT_OFFERED,
        "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone "
        "(us-east-1e). Launching EC2 instance failed.",
    ),
    (
        ProblemKind.KEY,
        "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: "
        "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
    ),
    (ProblemKind.KEY, "Client.InternalError: Client error on launch"),
    (
        ProblemKind.DENIED,
        "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/"
        "AWSServiceRoleForAutoScaling/AutoScaling. UnauthorizedOperation. Launching EC2 instance failed.",
    ),
    (
        ProblemKind.TEMPLATE,
        "Could not launch On-Demand Instances. InvalidFleetConfiguration - Your requested configuration is "
        "not "
        "valid.",
    ),
    (ProblemKind.TEMPLATE, "The image id '[ami-1]' does not exist. Launching EC2 instance failed."),
    (
        ProblemKind.TEMPLATE,
        "AttachmentLimitExceeded - Interface count 33 exceeds the limit. Launching EC2 instance failed.",
    ),
    (
        ProblemKind.RESERVATION_FULL,
        "Could not launch On-Demand Instances. ReservationCapacityExceeded - The requested reservation does not have "
        "sufficient compatible and available capacity for this request. Launching EC2 instance failed.",
    ),
    (
        ProblemKind.NO_CAPACITY,
        "spotFleetRequestConfigurationInvalid: p2.xlarge, ami-1, Linux/UNIX: There is no Spot capacity available "
        "that matches your request.",
    ),
    (
        ProblemKind.MAX_PRICE,
        "Could not launch Spot Instances. SpotMaxPriceTooLow - Your Spot request price of 3.1 is lower than the "
        "minimum required Spot request fulfillment price of 9.8. Launching EC2 instance failed.",
    ),
    (
        ProblemKind.MAX_PRICE,
        "fleetProgressHalted: The price in every launch specification is not valid because it is below the Spot "
        "price.",
    ),
    (
        ProblemKind.NOT_OFFERED,
        "launchSpecUnusable: p2.xlarge, ami-1, Linux/UNIX, eu-central-1c, requested instance type is not supported "
        "in the requested Availability Zone",
    ),
    (ProblemKind.QUOTA, "spotInstanceCountLimitExceeded: m4.4xlarge, ami-1, Linux/UNIX: Max spot count exceeded"),
    (ProblemKind.DENIED, "iamFleetRoleInvalid: The role arn:aws:iam::111122223333:role/fleet lacks permissions"),
    (
        ProblemKind.TEMPLATE,
        "spotFleetRequestConfigurationInvalid: r4.2xlarge, ami-1, Linux/UNIX: The associatePublicIPAddress parameter "
        "can only be specified for the network interface with DeviceIndex 0.",
    ),
    (ProblemKind.OTHER, "An unknown reason. Launching EC2 instance failed."),
    (
        ProblemKind.OTHER,
        "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token e85eb647-4fe0-4909-b341-"
        "a6c42EXAMPLE was abandoned: Lifecycle Action Completed with ABANDON Result",
    ),
]


def launch(message: str = "", *, minutes_ago: float = 5, status: str = "failed") -> Activity:
    return Activity(
        launch=True,
        started=NOW - timedelta(minutes=minutes_ago),
        failed=status == "failed",
        finished=status != "under way",
        message=message,
    )


def group(*activities: Activity, **settings: Any) -> Group:
    record = Record(state=State.RUNNING, size=8, since=settings.pop("since", SIZED))
    whole: dict[str, Any] = {
        "name": "asg",
        "node_group": "workers",
        "desired": 8,
        "minimum": 0,
        "maximum": 8,
        "in_service": 3,
        "zones": ("us-east-1b",),
        "instance_types": ("p4de.24xlarge",),
        "record": record,
        "activities": activities,
    }
    return Group(**(whole | settings))


def outlook(found: Group, *, ours: bool = True) -> Outlook:
    return find_problem(found, goal=found.desired, sized_by_us=ours, grace=GRACE, now=NOW, region="us-east-1").outlook


def sentence(found: Group) -> str:
    finding = find_problem(found, goal=found.desired, sized_by_us=True, grace=GRACE, now=NOW, region="us-east-1")
    assert finding.problem is not None
    return finding.problem.sentence


@pytest.mark.parametrize(("kind", "message"), MESSAGES)
def test_every_failure_has_its_own_words_and_keeps_those_of_aws(kind: ProblemKind, message: str) -> None:
    finding = find_problem(group(launch(message)), goal=8, sized_by_us=True, grace=GRACE, now=NOW, region="us-east-1")

    assert finding.problem is not None
    assert finding.problem.kind is kind
    assert finding.problem.sentence.startswith("workers: 3 of 8 nodes are running in us-east-1b: ")
    assert finding.problem.sentence.endswith(f"AWS says: {message}")


def test_each_rule_is_needed_by_a_message() -> None:
    assert {find_launch_failure(message) for _, message in MESSAGES} == set(LAUNCH_FAILURES)


def test_a_disabled_key_in_plain_words() -> None:
    words = sentence(group(launch(MESSAGES[7][1])))

    assert "a volume's encryption key could not be used (Client.InvalidKMSKey.InvalidState). Let the" in words


def test_a_spot_fleet_is_spoken_of_as_one() -> None:
    found = group(launch("UnfulfillableCapacity"), owner=SPOT_FLEET, name="sfr-1", node_group="extras", zones=())

    assert sentence(found) == (
        "extras: 3 of 8 nodes are running: EC2 has no more p4de.24xlarge in this Availability Zone now "
        "(UnfulfillableCapacity). "
        "The Spot Fleet asks for them again. Nodes that do run are billed while they wait for the others: if "
        "they are of "
        "no use alone, stop the group and start it later, or name more instance types, or buy the nodes in another "
        "way. AWS says: UnfulfillableCapacity"
    )
    assert "Let the role AWSServiceRoleForEC2SpotFleet use the KMS key" in sentence(
        group(launch("Client.InternalError"), owner=SPOT_FLEET)
    )
    assert sentence(group(owner=SPOT_FLEET, name="sfr-1")).endswith(
        "the Spot Fleet reports no error, and the others have not come up in more than 10 minutes. Look at the "
        "history of the Spot Fleet request sfr-1. The Spot Fleet asks for them again."
    )


def test_a_message_without_a_type_names_the_type_of_the_nodes_that_run() -> None:
    assert "no more p4de.24xlarge in this Availability Zone" in sentence(
        group(launch("InsufficientInstanceCapacity"))
    )


def test_a_message_without_a_type_in_an_empty_group_names_none() -> None:
    words = sentence(group(launch("InsufficientInstanceCapacity"), instance_types=(), in_service=0))

    assert "workers: 0 of 8 nodes are running in us-east-1b: EC2 has no more nodes of its type in this" in words


def test_suspended_launching_is_a_problem_of_its_own() -> None:
    running = "workers: 3 of 8 nodes are running in us-east-1b: "
    assert sentence(group(launching_suspended="It failed for 24 hours")) == (
        f"{running}Auto Scaling has suspended launching on the Auto Scaling group (It failed for 24 hours), as it "
        "does after about a day of failed launches. The power function resumes it. The power function asks for them "
        "again every 10 minutes."
    )
    for reason, words in (("", ""), ("User suspended at 2026-11-02T07:00:00Z",) * 2):
        assert sentence(group(launching_suspended=reason)) == (
            f"{running}launching is suspended on the Auto Scaling group{words and f' ({words})'}, and the power "
            "function does not resume it. When the cause is gone, resume it (aws autoscaling resume-processes "
            "--region us-east-1 --auto-scaling-group-name asg --scaling-processes Launch)."
        )


def test_of_a_group_that_an_operator_sized_it_is_said_what_auto_scaling_does_itself() -> None:
    for found, words in (
        (group(launch("InsufficientInstanceCapacity")), "Auto Scaling asks for them again, for about a day."),
        (group(launching_suspended="It failed for 24 hours"), "A start command resumes it."),
    ):
        problem = find_problem(found, goal=8, sized_by_us=False, grace=GRACE, now=NOW, region="us-east-1").problem
        assert problem
        assert words in problem.sentence


def test_nodes_that_take_too_long_without_an_error_are_a_problem() -> None:
    assert sentence(group(launch(status="under way", minutes_ago=11))) == (
        "workers: 3 of 8 nodes are running in us-east-1b: Auto Scaling reports no error, and the others have "
        "not come "
        "up in more than 10 minutes. Look at the activity history of the Auto Scaling group asg. The power function "
        "asks for them again every 10 minutes."
    )
    some_came = (launch(status="ok", minutes_ago=11), launch("quota", minutes_ago=12))
    assert "AWS says: quota" in sentence(group(*some_came))
    assert "reports no error" in sentence(group(*some_came[:1], launch("quota", minutes_ago=30)))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(group(in_service=8), Outlook.COMPLETE, id="complete"),
        pytest.param(group(in_service=9), Outlook.COMPLETE, id="one more while it terminates"),
        pytest.param(group(activities=None), Outlook.UNSEEN, id="activities unreadable"),
        pytest.param(group(since=NOW - GRACE), Outlook.PROBLEM, id="the grace is over"),
        pytest.param(group(since=NOW - GRACE + timedelta(seconds=1)), Outlook.PENDING, id="within the grace"),
        pytest.param(
            group(launch("quota", minutes_ago=61), since=NOW - timedelta(minutes=1)),
            Outlook.PENDING,
            id="a failure before the size was set says nothing",
        ),
        pytest.param(group(launch("quota"), since=NOW - timedelta(minutes=6)), Outlook.PROBLEM, id="failed early"),
        pytest.param(
            group(launch(status="under way", minutes_ago=1), launch("quota")),
            Outlook.PROBLEM,
            id="a new attempt under way does not undo a failure",
        ),
        pytest.param(
            group(launch(status="ok", minutes_ago=1), launch("quota")),
            Outlook.PENDING,
            id="a success after a failure does",
        ),
    ],
)
def test_the_outlook(found: Group, expected: Outlook) -> None:
    assert outlook(found) is expected


@pytest.mark.parametrize(
    ("state", "hours", "sized", "expected"),
    [
        pytest.param("DeepHealthCheckInProgress", 2.9, 3, Outlook.PENDING, id="deep health checks"),
        pytest.param("DeepHealthCheckInProgress", 3, 3, Outlook.PROBLEM, id="checks that do not end"),
        pytest.param("SystemUpdating", 90, 99, Outlook.PENDING, id="an operator's update of software"),
        pytest.param("Pending", 0.4, 0.4, Outlook.PENDING, id="lifecycle scripts"),
        pytest.param("Pending", 0.5, 0.5, Outlook.PROBLEM, id="scripts that do not end"),
        pytest.param("Failure", 0.6, 0.6, Outlook.PROBLEM, id="failed"),
    ],
)
def test_hyperpod_takes_its_time_to_prepare_nodes(state: str, hours: float, sized: float, expected: Outlook) -> None:
    ready = {f"i-{number}": OwnedNode(state="InService", launched=SIZED) for number in range(7)}
    nodes = {**ready, "i-7": OwnedNode(state=state, launched=NOW - timedelta(hours=hours))}
    found = group(
        owner=OWNER_KINDS["hyperpod_instance_group"],
        in_service=7,
        nodes=nodes,
        since=NOW - timedelta(hours=sized),
    )
    assert outlook(found) is expected
    assert outlook(replace(found, desired=9)) is (Outlook.PENDING if sized < 0.5 else Outlook.PROBLEM)


def test_nodes_that_are_set_up_and_verified_are_not_missing() -> None:
    ready = {f"i-{number}": OwnedNode(state="InService") for number in range(7)}
    for state, expected in (("Pending:Wait", Outlook.PENDING), ("Pending", Outlook.PROBLEM)):
        found = group(in_service=7, nodes={**ready, "i-7": OwnedNode(state=state)}, since=NOW - 2 * GRACE)
        assert outlook(found) is expected


def test_a_group_that_an_operator_sized_is_never_called_slow() -> None:
    """Nobody knows since when it has that size."""
    assert outlook(group(), ours=False) is Outlook.PENDING
    assert outlook(group(launch("quota")), ours=False) is Outlook.PROBLEM


def surplus(found: Group, goal: int = 0) -> tuple[Outlook, str]:
    finding = find_surplus(found, goal=goal, grace=GRACE, now=NOW, region="us-east-1")
    return finding.outlook, finding.problem.sentence if finding.problem else ""


def stuck(*states: str, minutes: float = 10, **settings: Any) -> Group:
    record = Record(state=State.STOPPED, size=0, since=NOW - timedelta(minutes=minutes))
    return group(**({"in_service": 0, "desired": 0, "out_of_service": states, "record": record} | settings))


@pytest.mark.parametrize(
    ("found", "goal", "expected"),
    [
        pytest.param(stuck(), 0, Outlook.COMPLETE, id="nothing runs"),
        pytest.param(stuck("Terminating"), 1, Outlook.COMPLETE, id="no more than should"),
        pytest.param(stuck("Terminating", minutes=9.9), 0, Outlook.PENDING, id="within the grace"),
        pytest.param(stuck("Terminating"), 0, Outlook.PROBLEM, id="the grace is over"),
        pytest.param(stuck("Terminating", record=Record()), 0, Outlook.PENDING, id="since when is not known"),
    ],
)
def test_the_outlook_on_nodes_too_many(found: Group, goal: int, expected: Outlook) -> None:
    assert surplus(found, goal)[0] is expected


@pytest.mark.parametrize(
    ("found", "what_to_do"),
    [
        (
            stuck("Terminating:Wait", "Terminating:Wait"),
            "A lifecycle hook keeps 2 nodes: complete the lifecycle action",
        ),
        (stuck("Terminating:Retained"), "A lifecycle hook that was abandoned retains 1 node: inspect each, and"),
        (
            stuck("Standby", "EnteringStandby"),
            "Auto Scaling does not terminate 2 nodes in Standby: terminate each, or",
        ),
        (stuck(in_service=2, protected=1), "Scale-in protection keeps 1 node: remove it"),
        (stuck("Terminating", terminating_suspended=""), "The process Terminate of the Auto Scaling group asg is "),
        (
            stuck("unhealthy", owner=SPOT_FLEET, name="sfr-1"),
            "No reason is reported: look at the history of the Spot Fleet request sfr-1, and at the nodes",
        ),
        (
            stuck(in_service=2, owner=OWNER_KINDS["batch_compute_environment"], name="jobs"),
            "AWS Batch runs their jobs to the end before it terminates them: wait, or end the jobs (aws batch ",
        ),
        (stuck("Quarantined"), "No reason is reported: look at the activity history"),
    ],
)
def test_what_keeps_nodes_running_is_said_with_what_one_can_do(found: Group, what_to_do: str) -> None:
    outlook, words = surplus(found)

    assert outlook is Outlook.PROBLEM
    assert words.startswith("workers: ")
    assert what_to_do in words


def test_every_reason_that_is_seen_is_said() -> None:
    found = stuck("Terminating:Wait", "Standby", in_service=1, protected=1, terminating_suspended="why")

    words = surplus(found)[1]

    for reason in ("suspended (why)", "Scale-in protection", "lifecycle hook", "in Standby"):
        assert reason in words
    assert "No reason is reported" not in words

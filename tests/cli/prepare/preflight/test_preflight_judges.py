"""What preflight makes of AWS's answers: each judgement with its neighbours."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cdk_training_cluster_cli.money.prices.spot_market import PlacementScore
from cdk_training_cluster_cli.prepare.preflight.account import (
    LinkedRole,
    judge_account,
    judge_concurrency,
    judge_role,
)
from cdk_training_cluster_cli.prepare.preflight.checks import Outcome, Verdict
from cdk_training_cluster_cli.prepare.preflight.images import judge_image
from cdk_training_cluster_cli.prepare.preflight.needs import ImageNeed
from cdk_training_cluster_cli.prepare.preflight.permissions import ACTIONS, judge_caller, judge_simulation
from cdk_training_cluster_cli.prepare.preflight.purchases import RequiredPurchase, judge_end, judge_purchase
from cdk_training_cluster_cli.prepare.preflight.quotas import Demand, Quota, judge_quota
from cdk_training_cluster_cli.prepare.preflight.stacks import judge_bootstrap, judge_stack
from cdk_training_cluster_cli.prepare.preflight.storage import (
    BucketNeed,
    judge_bucket,
    judge_directory_bucket,
    judge_file_system,
    judge_key,
    judge_key_policy,
)
from cdk_training_cluster_cli.prepare.preflight.zones import judge_offering, judge_spot, judge_subnet, judge_zone
from cdk_training_cluster_file.model import ExistingFileSystem, NetworkSettings
from cluster_contract.tags import CLUSTER_TAG
from examples import PROJECT
from preflight_needs import group

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN
ZONE, NOW = "us-east-1b", datetime(2026, 11, 22, 12, tzinfo=UTC)


def launched_from(image: str = "ami-1") -> ImageNeed:
    return ImageNeed(name="workers", image=image, architectures={"p5.48xlarge": ("x86_64",)}, root_volume_gib=200)


def zone(**more: Any) -> dict[str, Any]:
    return {"ZoneName": ZONE, "ZoneId": "use1-az1", "State": "available", "OptInStatus": "opted-in", **more}


def subnet(**more: Any) -> dict[str, Any]:
    return {"VpcId": "vpc-1", "AvailabilityZone": ZONE, "AvailableIpAddressCount": 4, **more}


def scores(*values: int) -> list[PlacementScore]:
    return [PlacementScore(region="us-east-1", zone_id=f"use1-az{n}", score=each) for n, each in enumerate(values, 1)]


def simulated(decision: str, **more: Any) -> dict[str, Any]:
    return {"EvalActionName": "ec2:CreateVpc", "EvalDecision": decision, **more}


def described(state: str = "active", **more: Any) -> dict[str, Any]:
    given = {"InstanceType": "p5.48xlarge", "AvailabilityZone": ZONE, "TotalInstanceCount": 4}
    return {**given, "State": state, "AvailableInstanceCount": 4, **more}


def wanted(*, block: bool = False, alone: bool = True) -> RequiredPurchase:
    return RequiredPurchase(id="cr-1", group=group(), block=block, zone=ZONE, alone=alone)


def image(**more: Any) -> dict[str, Any]:
    return {"State": "available", "Architecture": "x86_64", "Name": "deep", **more}


def _volumes(gib: int) -> list[dict[str, Any]]:
    return [
        {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 1000}},
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": gib}},
    ]


_P = Quota(service="ec2", code="L-417A185B", name="Running On-Demand P instances", unit="vCPUs")
_MANY = Demand(least=100, most=200)
_NETWORK = NetworkSettings(vpc_id="vpc-0a1b2c3d", subnet_id="subnet-0a1b2c3d").model_copy(update={"vpc_id": "vpc-1"})
_FILES = ExistingFileSystem(file_system_id="fs-0a1b2c3d", mount_name="abcdefgh")
_MADE = {"FileSystemType": "LUSTRE", "Lifecycle": "AVAILABLE", "VpcId": "vpc-1"}
_MADE |= {"LustreConfiguration": {"MountName": "abcdefgh"}}  # type: ignore[dict-item]
_BUCKET = BucketNeed(name="corpus", setting="datasets: /data", region="us-east-1")
_REPLICA = BucketNeed(name="copy", setting="replicate_to", region="us-west-2", versioned=True)
_KEY = {"KeyId": "1", "KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT"}
_LIMITS = {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 104}
_STACK = partial(judge_stack, "llama-cluster", "llama", "us-east-1")
_TAGS = [{"Key": CLUSTER_TAG, "Value": "other"}]
_STATEMENT = {"Sid": "LogGroups", "Effect": "Allow"}
_POLICY = partial(judge_key_policy, "llama.yaml", [_STATEMENT])

VERDICTS: dict[str, tuple[Verdict, Outcome, str]] = {
    "quota: just enough": (judge_quota(_P, _MANY, "us-east-1", (300, 100)), PASS, "200 of 300 are free"),
    "quota: too little": (judge_quota(_P, _MANY, "us-east-1", (199, 100)), FAIL, "--desired-value 300"),
    "quota: for some types": (judge_quota(_P, _MANY, "us-east-1", (200, 100)), UNKNOWN, "100 to 200 vCPUs"),
    "quota: not there": (judge_quota(_P, _MANY, "us-east-1", (None, 0)), UNKNOWN, "L-417A185B"),
    "zone": (judge_zone(ZONE, None, zone()), PASS, "use1-az1"),
    "zone: none": (judge_zone(ZONE, None, None), FAIL, "describe-availability-zones"),
    "zone: another id": (judge_zone(ZONE, "use1-az4", zone()), FAIL, "write zone_id: use1-az1"),
    "zone: impaired": (judge_zone(ZONE, None, zone(State="impaired")), UNKNOWN, "impaired"),
    "zone: Local Zone": (
        judge_zone(ZONE, None, zone(OptInStatus="not-opted-in", GroupName="us-east-1-atl-2")),
        FAIL,
        "modify-availability-zone-group --group-name us-east-1-atl-2",
    ),
    "offering": (judge_offering("p5.48xlarge", ZONE, [ZONE]), PASS, ZONE),
    "offering: elsewhere": (
        judge_offering("p5.48xlarge", ZONE, ["us-east-1f"]),
        FAIL,
        "availability_zone: us-east-1f",
    ),
    "offering: nowhere": (judge_offering("p5.48xlarge", ZONE, []), FAIL, "another region"),
    "subnet": (judge_subnet(_NETWORK, ZONE, 4, subnet()), PASS, "4 free addresses"),
    "subnet: full": (judge_subnet(_NETWORK, ZONE, 5, subnet()), FAIL, "larger subnet"),
    "subnet: none": (judge_subnet(_NETWORK, ZONE, 4, None), FAIL, "no subnet"),
    "subnet: VPC": (judge_subnet(_NETWORK, ZONE, 4, subnet(VpcId="vpc-2")), FAIL, "write vpc_id: vpc-2"),
    "subnet: zone": (
        judge_subnet(_NETWORK, ZONE, 4, subnet(AvailabilityZone="us-east-1c")),
        FAIL,
        "write availability_zone: us-east-1c",
    ),
    "Spot: likely": (judge_spot(ZONE, ("use1-az1", scores(5, 9))), PASS, "5 of 10"),
    "Spot: unlikely": (judge_spot(ZONE, ("use1-az1", scores(4, 9))), UNKNOWN, "use1-az2 has 9"),
    "Spot: no score": (judge_spot(ZONE, ("use1-az6", scores(4, 9))), UNKNOWN, "no Spot placement score"),
    "account": (judge_account(None, "1", "arn"), PASS, "arn"),
    "account: another": (judge_account("2", "1", "arn"), FAIL, "--profile"),
    "role": (judge_role(LinkedRole(name="R", service="s"), exists=True), PASS, "R exists"),
    "role: by hand": (
        judge_role(LinkedRole(name="R", service="s"), exists=False),
        FAIL,
        "create-service-linked-role --aws-service-name s",
    ),
    "role: by AWS": (judge_role(LinkedRole(name="R", service="s", made="it"), exists=False), PASS, "it makes it"),
    "Lambda: 100 stay": (judge_concurrency(4, "us-east-1", (_LIMITS, 0)), PASS, "104 of 1000"),
    "Lambda: 99 stay": (judge_concurrency(5, "us-east-1", (_LIMITS, 0)), FAIL, "--desired-value 1001"),
    "Lambda: made": (judge_concurrency(5, "us-east-1", (_LIMITS, 5)), PASS, "0 functions"),
    "bootstrap": (judge_bootstrap("f", "6"), PASS, "version 6"),
    "bootstrap: old": (judge_bootstrap("f", "5"), FAIL, "training-cluster bootstrap f"),
    "bootstrap: none": (judge_bootstrap("f", None), FAIL, "training-cluster bootstrap f"),
    "bootstrap: odd": (judge_bootstrap("f", "new"), UNKNOWN, "'new'"),
    "stack: none": (_STACK(None), PASS, "makes it"),
    "stack: there": (_STACK({"StackStatus": "UPDATE_ROLLBACK_COMPLETE"}), PASS, "updates it"),
    "stack: another's": (_STACK({"StackStatus": "CREATE_COMPLETE", "Tags": _TAGS}), FAIL, "cluster other"),
    "stack: rolled back": (_STACK({"StackStatus": "ROLLBACK_COMPLETE"}), FAIL, "--no-enable-termination-protection"),
    "stack: stuck": (_STACK({"StackStatus": "UPDATE_ROLLBACK_FAILED"}), FAIL, "continue-update-rollback"),
    "stack: busy": (_STACK({"StackStatus": "UPDATE_IN_PROGRESS"}), FAIL, "describe-stack-events"),
    "simulation": (judge_simulation("R", [simulated("allowed")]), PASS, "all 1 actions"),
    "simulation: denied": (judge_simulation("R", [simulated("explicitDeny")]), FAIL, "allow R: ec2:CreateVpc"),
    "simulation: resources": (judge_simulation("R", [simulated("implicitDeny")]), UNKNOWN, "on some resources"),
    "simulation: both": (
        judge_simulation("R", [simulated("implicitDeny"), simulated("explicitDeny")]),
        FAIL,
        "R is denied ec2:CreateVpc",
    ),
    "simulation: conditions": (
        judge_simulation("R", [simulated("implicitDeny", MissingContextValues=["aws:RequestTag/a"])]),
        UNKNOWN,
        "under conditions only",
    ),
    "simulation: no role": (judge_simulation("R", None), UNKNOWN, "does not exist yet"),
    "caller: root": (judge_caller(None), PASS, "root"),
    "caller: roles": (judge_caller(([simulated("allowed")], [simulated("implicitDeny")])), PASS, "CDK's roles"),
    "caller: own": (judge_caller(([simulated("explicitDeny")], [simulated("allowed")])), PASS, "of its own"),
    "caller: neither": (
        judge_caller(([simulated("explicitDeny")], [simulated("explicitDeny")])),
        FAIL,
        "sts:AssumeRole",
    ),
    "reservation": (judge_purchase(wanted(), NOW, described()), PASS, "4 instances, 4 of them unused"),
    "reservation: none": (judge_purchase(wanted(), NOW, None), FAIL, "no cr-1"),
    "reservation: small": (judge_purchase(wanted(), NOW, described(TotalInstanceCount=3)), FAIL, "count: 3"),
    "reservation: in turn": (judge_purchase(wanted(alone=False), NOW, described(TotalInstanceCount=3)), PASS, "3"),
    "reservation: zone": (
        judge_purchase(wanted(), NOW, described(AvailabilityZone="us-east-1c")),
        FAIL,
        "availability_zone: us-east-1c",
    ),
    "reservation: type": (
        judge_purchase(wanted(), NOW, described(InstanceType="p5e.48xlarge")),
        FAIL,
        "instance_types: [p5e.48xlarge]",
    ),
    "reservation: over": (judge_purchase(wanted(), NOW, described("expired")), FAIL, "is expired"),
    "reservation: coming": (judge_purchase(wanted(), NOW, described("payment-pending")), UNKNOWN, "wait until"),
    "reservation: ended": (judge_purchase(wanted(), NOW, described(EndDate=NOW)), FAIL, "no node starts"),
    "reservation: a block": (
        judge_purchase(wanted(), NOW, described(ReservationType="capacity-block")),
        FAIL,
        "write it under capacity_block",
    ),
    "reservation: group": (
        judge_purchase(
            replace(wanted(), placement_group="a"), NOW, described(PlacementGroupArn="arn:x:placement-group/b")
        ),
        FAIL,
        "write placement_group: b",
    ),
    "reservation: in no group": (
        judge_purchase(replace(wanted(), placement_group="a"), NOW, described()),
        FAIL,
        "leave placement_group out",
    ),
    "reservation: platform": (
        judge_purchase(replace(wanted(), platform="Linux/UNIX"), NOW, described(InstancePlatform="Windows")),
        FAIL,
        "is for Windows",
    ),
    "reservation: tenancy": (judge_purchase(wanted(), NOW, described(Tenancy="dedicated")), FAIL, "dedicated"),
    "reservation: made": (judge_end(NOW + timedelta(seconds=1), NOW, None), PASS, "until 2026-11-22 12:00 UTC"),
    "reservation: made too late": (judge_end(NOW, NOW, None), FAIL, "write a later end"),
    "reservation: has ended": (
        judge_end(NOW, NOW, {"StackStatus": "UPDATE_COMPLETE"}),
        PASS,
        "2026-11-22 12:00 UTC is past: a deployment makes no reservation, and can change all else",
    ),
    "block: later": (
        judge_purchase(
            wanted(block=True),
            NOW,
            described("scheduled", ReservationType="capacity-block", StartDate=NOW, EndDate=NOW + timedelta(hours=1)),
        ),
        PASS,
        "from 2026-11-22 12:00 UTC",
    ),
    "block: ends": (
        judge_purchase(
            wanted(block=True),
            NOW,
            described(ReservationType="capacity-block", EndDate=NOW + timedelta(minutes=40)),
        ),
        FAIL,
        "no node starts",
    ),
    "block: a reservation": (judge_purchase(wanted(block=True), NOW, described()), FAIL, "under from_reservation"),
    "image smaller than the root volume": (
        judge_image(
            launched_from(), "1", ("ami-1", image(RootDeviceName="/dev/xvda", BlockDeviceMappings=_volumes(200)))
        ),
        PASS,
        "ami-1 is available",
    ),
    "image larger than the root volume": (
        judge_image(
            launched_from(), "1", ("ami-1", image(RootDeviceName="/dev/xvda", BlockDeviceMappings=_volumes(201)))
        ),
        FAIL,
        "the root volume of 200 GiB is smaller than that of the image ami-1, 201 GiB: EC2 launches no node with a "
        "root volume that is smaller than the image's snapshot",
    ),
    "image": (judge_image(launched_from(), "1", ("ami-1", image())), PASS, "ami-1 is available"),
    "image: no parameter": (judge_image(launched_from("/aws/x"), "1", (None, None)), FAIL, "/aws/x"),
    "image: none": (judge_image(launched_from(), "1", ("ami-1", None)), FAIL, "no image ami-1"),
    "image: pending": (judge_image(launched_from(), "1", ("ami-1", image(State="pending"))), FAIL, "pending"),
    "image: arm": (judge_image(launched_from(), "1", ("ami-1", image(Architecture="arm64"))), FAIL, "for arm64"),
    "bucket": (judge_bucket(_BUCKET, ("us-east-1", False)), PASS, "us-east-1"),
    "bucket: elsewhere": (judge_bucket(_BUCKET, ("us-west-2", False)), FAIL, "needs a bucket in us-east-1"),
    "bucket: none": (judge_bucket(_BUCKET, None), FAIL, "aws s3 mb s3://corpus --region us-east-1"),
    "bucket: versions": (judge_bucket(_REPLICA, ("us-west-2", True)), PASS, "versioning"),
    "bucket: no versions": (judge_bucket(_REPLICA, ("us-west-2", False)), FAIL, "put-bucket-versioning"),
    "directory bucket": (judge_directory_bucket("a--x-s3", "r", ["a--x-s3"]), PASS, "a--x-s3"),
    "directory bucket: none": (judge_directory_bucket("a--x-s3", "r", []), FAIL, "leave it out"),
    "key": (judge_key("k", _KEY), PASS, "enabled"),
    "key: none": (judge_key("k", None), FAIL, "no key k"),
    "key: disabled": (judge_key("k", {**_KEY, "KeyState": "Disabled"}), FAIL, "enable-key --key-id k"),
    "key: deleted": (judge_key("k", {**_KEY, "KeyState": "PendingDeletion"}), FAIL, "cancel-key-deletion"),
    "key: signs": (judge_key("k", {**_KEY, "KeyUsage": "SIGN_VERIFY"}), FAIL, "symmetric"),
    "policy": (_POLICY(json.dumps({"Statement": [{**_STATEMENT, "Sid": "x"}]})), PASS, "1 statements"),
    "policy: lacks": (_POLICY(json.dumps({"Statement": []})), UNKNOWN, "training-cluster key-policy llama.yaml"),
    "policy: none": (_POLICY(None), UNKNOWN, "no such key"),
    "files": (judge_file_system(_FILES, _MADE), PASS, "vpc-1"),
    "files: none": (judge_file_system(_FILES, None), FAIL, "no file system"),
    "files: other": (judge_file_system(_FILES, {**_MADE, "FileSystemType": "ONTAP"}), FAIL, "ONTAP"),
    "files: updating": (judge_file_system(_FILES, {**_MADE, "Lifecycle": "UPDATING"}), PASS, "UPDATING"),
    "files: broken": (judge_file_system(_FILES, {**_MADE, "Lifecycle": "MISCONFIGURED"}), FAIL, "MISCONFIGURED"),
    "files: mount": (
        judge_file_system(_FILES, {**_MADE, "LustreConfiguration": {"MountName": "z"}}),
        FAIL,
        "write mount_name: z",
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_an_answer_means(case: str) -> None:
    verdict, outcome, words = VERDICTS[case]
    assert verdict.outcome is outcome, verdict
    assert words in f"{verdict.said} -> {verdict.mend}"
    assert outcome is not FAIL or verdict.mend, "what fails is mended by something"


def test_each_type_of_a_released_template_has_its_actions() -> None:
    templates = (json.loads(path.read_text("utf-8")) for path in (PROJECT / "releases").rglob("*.template.json"))
    kinds = {each["Type"] for template in templates for each in template["Resources"].values()}
    assert kinds
    assert kinds <= set(ACTIONS)

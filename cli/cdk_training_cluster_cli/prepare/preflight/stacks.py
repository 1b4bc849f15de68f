"""What CloudFormation and the CDK have in the account: existing stacks of the cluster's name, and the bootstrap."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import (
    Aws,
    Check,
    Verdict,
    failed,
    found,
    passed,
    tags_of,
    unknown,
)
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cluster_contract.tags import CLUSTER_TAG

# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_BOOTSTRAP_VERSION = "/cdk-bootstrap/hnb659fds/version"
LEAST_BOOTSTRAP = 6
"""What the templates of `DefaultStackSynthesizer` ask for: the parameter BootstrapVersion and its rule."""

# A stack in these was never made whole and takes no update; the others that fail can be repaired:
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
_ONLY_TO_DELETE = frozenset({"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"})


def described_stack(name: str, aws: Aws) -> Mapping[str, Any] | None:
    """Return a stack as CloudFormation describes it. None: there is none.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html

    Args:
        name: The stack's name.
        aws: AWS.
    """
    said = found(partial(aws.client("cloudformation").describe_stacks, StackName=name), "ValidationError")
    stacks = () if said is None else said["Stacks"]
    # What cdk bootstrap or a change set that was never executed has left is no stack yet.
    return next((each for each in stacks if each["StackStatus"] != "REVIEW_IN_PROGRESS"), None)


def judge_stack(name: str, cluster: str, region: str, stack: Mapping[str, Any] | None) -> Verdict:
    """Say whether a stack can be made or updated.

    Args:
        name: Its name.
        cluster: The cluster's name.
        region: The region.
        stack: What CloudFormation says of it. None: there is none.
    """
    if stack is None:
        return passed("there is none yet: the deployment makes it")
    status, owner = stack["StackStatus"], tags_of(stack).get(CLUSTER_TAG, cluster)
    aws = f"aws cloudformation {{}} --region {region} --stack-name {name}"
    if owner != cluster:
        return failed(f"a stack of this name belongs to the cluster {owner}", "give the cluster another name")
    if status in _ONLY_TO_DELETE:
        unprotect = aws.format("update-termination-protection --no-enable-termination-protection")
        return failed(f"it is {status}, and takes no update", f"{unprotect}; {aws.format('delete-stack')}")
    if status == "UPDATE_ROLLBACK_FAILED":
        return failed(f"it is {status}, and takes no update", aws.format("continue-update-rollback"))
    if status.endswith("_IN_PROGRESS"):
        said = f"it is {status}: CloudFormation takes one deployment of it at a time"
        return failed(said, f"wait until that has ended: {aws.format('describe-stack-events')}")
    return passed(f"it is {status}: the deployment updates it")


def judge_bootstrap(file: str, version: str | None) -> Verdict:
    """Say whether the CDK's own resources are there and new enough.

    Args:
        file: The path of the cluster file.
        version: The version of the bootstrap stack. None: it is not there.
    """
    mend = f"training-cluster bootstrap {file}"
    if version is None:
        return failed("the CDK is not bootstrapped in this account and region", mend)
    if not version.isdecimal():
        return unknown(f"the version of the CDK's bootstrap stack must be a number, got {version!r}", mend)
    if int(version) < LEAST_BOOTSTRAP:
        return failed(f"the CDK's bootstrap stack has version {version}, and {LEAST_BOOTSTRAP} is needed", mend)
    return passed(f"the CDK is bootstrapped, version {version}")


def stack_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of the bootstrap and of the cluster's two stacks.

    Args:
        needs: What the cluster needs.
    """
    yield Check(name="CDK bootstrap", ask=_bootstrap, judge=partial(judge_bootstrap, needs.file))
    cluster = needs.cluster
    for name in (cluster.foundation_stack_name, cluster.cluster_stack_name):
        yield Check(
            name=f"stack {name}",
            ask=partial(described_stack, name),
            judge=partial(judge_stack, name, cluster.name, needs.region),
        )


def _bootstrap(aws: Aws) -> str | None:
    said = found(partial(aws.client("ssm").get_parameter, Name=_BOOTSTRAP_VERSION), "ParameterNotFound")
    return None if said is None else str(said["Parameter"]["Value"])

"""Settings that a file system keeps for ever: a deployment that would change one fails before FSx is asked.

CloudFormation replaces a file system by an empty one, or FSx ignores the new value without a message. So the settings
are written to an SSM parameter with a fixed name, and the parameter's logical id holds a digest of them. Other
settings make another logical id of the same name, and CloudFormation makes what is new before it deletes what is
gone: it refuses the second parameter of one name, and goes back.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html and
https://github.com/aws/aws-cdk/issues/31058
"""

import hashlib
import json
import re
from collections.abc import Mapping

from aws_cdk import Aws, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

_DESCRIPTION = (
    "The settings of a file system that never change. If a deployment says that this parameter already exists, it "
    "would have replaced the file system by an empty one: give the deployed settings again. See docs/storage.md."
)
_LONGEST_PATH = 200


def keep_fixed(scope: Construct, settings: Mapping[str, object]) -> ssm.CfnParameter:
    """Make the parameter that lets a deployment fail which changes one of these settings.

    A setting that the library learns to fix in a later version must be left out where it has its default: a deployed
    file system would be refused otherwise.

    Args:
        scope: The file system.
        settings: The settings by name; tokens are compared as they stand in the template.
    """
    stack = Stack.of(scope)
    resolved = json.dumps(stack.resolve(dict(settings)), sort_keys=True)
    digest = hashlib.sha256(resolved.encode()).hexdigest()[:8]
    path = scope.node.path.removeprefix(stack.node.path).strip("/").replace("/", ".")
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", path)[-_LONGEST_PATH:]
    return ssm.CfnParameter(
        scope,
        f"FixedSettings{digest}",
        name=Fn.join("", ["/training-cluster/", Aws.STACK_NAME, f"/{plain}/fixed-settings"]),
        type="String",
        value=stack.to_json_string(dict(settings)),
        description=_DESCRIPTION,
    )


def place_of(subnet: ec2.ISubnet) -> dict[str, object]:
    """Return what identifies the place of a subnet: a subnet that would be replaced has another.

    Args:
        subnet: The subnet.
    """
    made = (
        {"cidr": subnet.ipv4_cidr_block, "zone": subnet.availability_zone} if isinstance(subnet, ec2.Subnet) else {}
    )
    return {"subnet": subnet.subnet_id, **made}

"""Pages of DescribeInstances without network interfaces, which the functions do not read.

A node with 33 network interfaces is 35 KB of XML, nearly all of it the interfaces. botocore would spend most of a
function's time and memory on them: they are cut out before it parses a page.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

_START, _END = b"<networkInterfaceSet>", b"</networkInterfaceSet>"
_HOOK = "cluster-without-interfaces"


def without_interfaces(client: "EC2Client") -> "EC2Client":
    """Let a client answer DescribeInstances without network interfaces, and return it.

    `before-parse` is an event of botocore's. One that does not know it parses everything, and the answer is the same.

    Args:
        client: The client; giving it twice changes nothing.
    """
    client.meta.events.register("before-parse.ec2.DescribeInstances", _cut, unique_id=_HOOK)
    return client


def _cut(response_dict: dict[str, Any], **_: object) -> None:
    """Cut the interfaces out of a response's body. The sets do not nest: those of interfaces have other names."""
    first, *rest = response_dict["body"].split(_START)
    response_dict["body"] = b"".join([first, *(part.partition(_END)[2] for part in rest)])

"""Images that nodes are launched from: that they exist, are available, and have their types' architecture."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cdk_training_cluster_cli.prepare.preflight.checks import Aws, Check, Verdict, failed, found, passed, unknown
from cdk_training_cluster_cli.prepare.preflight.needs import ImageNeed, Needs

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/CommonErrors.html
_NO_IMAGE = ("InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable")


def judge_image(need: ImageNeed, account: str, answer: tuple[str | None, Mapping[str, Any] | None]) -> Verdict:
    """Say whether nodes can be launched from an image.

    Args:
        need: The image, and the nodes.
        account: The account of the credentials.
        answer: The image's id, and what EC2 says of it. None: there is no such parameter, or no such image.
    """
    image_id, image = answer
    if image_id is None:
        return failed(
            f"AWS publishes no image under {need.image} in this region",
            "write image: with an ami- id of this region",
        )
    if image is None:
        return failed(
            f"there is no image {image_id} in this region, or it is not shared with this account", "correct image"
        )
    if image["State"] != "available":
        return failed(f"the image {image_id} is {image['State']}", "name another image")
    return _judge_description(need, account, image_id, image)


def _judge_description(need: ImageNeed, account: str, image_id: str, image: Mapping[str, Any]) -> Verdict:
    for instance_type, architectures in need.architectures.items():
        if image["Architecture"] not in architectures:
            wants = " or ".join(architectures)
            return failed(
                f"the image {image_id} is for {image['Architecture']}, {instance_type} for {wants}",
                "name another image",
            )
    if image.get("RootDeviceType", "ebs") != "ebs":
        return unknown(
            f"the image {image_id} has a root device of type {image['RootDeviceType']}", "name an EBS-backed image"
        )
    if need.root_volume_gib is None:
        return _judge_for_hyperpod(account, image_id, image)
    snapshot = _root_snapshot_gib(image)
    if snapshot > need.root_volume_gib:
        return failed(
            f"the root volume of {need.root_volume_gib} GiB is smaller than that of the image {image_id}, {snapshot} "
            "GiB: EC2 launches no node with a root volume that is smaller than the image's snapshot",
            f"set root_volume_gib to {snapshot} or more",
        )
    return _available(image_id, image)


def _judge_for_hyperpod(account: str, image_id: str, image: Mapping[str, Any]) -> Verdict:
    """Say whether HyperPod takes an image.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
    """
    volumes = [each["Ebs"] for each in image.get("BlockDeviceMappings", ()) if "Ebs" in each]
    troubles = [
        text
        for wrong, text in (
            (image.get("OwnerId") != account, f"is owned by {image.get('OwnerId')}, not by {account}"),
            (any(each.get("Encrypted") for each in volumes), "is encrypted"),
            (len(volumes) > 1, f"has {len(volumes)} volumes"),
        )
        if wrong
    ]
    if troubles:
        return failed(
            f"the image {image_id} {' and '.join(troubles)}",
            "copy it without encryption and with its root volume only, as an image of this account",
        )
    return _available(image_id, image)


def _available(image_id: str, image: Mapping[str, Any]) -> Verdict:
    return passed(f"{image_id} is available for {image['Architecture']}: {image.get('Name', 'without a name')}")


def _root_snapshot_gib(image: Mapping[str, Any]) -> int:
    for mapping in image.get("BlockDeviceMappings", ()):
        if mapping.get("DeviceName") == image.get("RootDeviceName"):
            return int(mapping.get("Ebs", {}).get("VolumeSize", 0))
    return 0


def image_checks(needs: Needs) -> Iterator[Check]:
    """Yield a check for each image that nodes are launched from.

    Args:
        needs: What the cluster needs.
    """
    for need in needs.images:
        yield Check(
            name=f"image of {need.name}",
            ask=partial(_image, need.image),
            judge=partial(_judge, need),
        )


def _judge(need: ImageNeed, found: tuple[str, tuple[str | None, Mapping[str, Any] | None]]) -> Verdict:
    return judge_image(need, *found)


def _image(image: str, aws: Aws) -> tuple[str, tuple[str | None, Mapping[str, Any] | None]]:
    image_id: str | None = image
    if image.startswith("/"):
        said = found(partial(aws.client("ssm").get_parameter, Name=image), "ParameterNotFound")
        image_id = None if said is None else str(said["Parameter"]["Value"])
    if image_id is None:
        return aws.account, (None, None)
    images = found(partial(aws.client("ec2").describe_images, ImageIds=[image_id]), *_NO_IMAGE)
    return aws.account, (image_id, None if images is None else next(iter(images["Images"]), None))

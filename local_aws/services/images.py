"""The public images that AWS tells through Systems Manager: parameters, and the images that they name.

https://docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html and
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/dlami/index.html
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ssm.models import Parameter, ssm_backends


@dataclass(frozen=True)
class PublicImage:
    """An image that AWS publishes.

    Attributes:
        parameter: The public parameter that holds the image's id.
        architecture: The architecture.
        root_device: The name of the root device.
        name: The image's name.
        snapshot_gib: The size of its root snapshot, in GiB. No document states that of the Deep Learning images; the
            EC2 console suggests 100: https://github.com/aws/deep-learning-containers/pull/2425
    """

    parameter: str
    architecture: str
    root_device: str
    name: str
    snapshot_gib: int = 100

    @property
    def id(self) -> str:
        """The image id: made from the parameter's name, so that it is the same in every run."""
        return f"ami-0{hashlib.sha256(self.parameter.encode()).hexdigest()[:16]}"


_ROOT_DEVICES = {
    "amazon-linux-2023": "/dev/xvda",
    "ubuntu-22.04": "/dev/sda1",
    "ubuntu-24.04": "/dev/sda1",
}


# https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
_EKS = {
    "AL2023_x86_64_STANDARD": "x86_64/standard",
    "AL2023_ARM_64_STANDARD": "arm64/standard",
    "AL2023_x86_64_NVIDIA": "x86_64/nvidia",
    "AL2023_ARM_64_NVIDIA": "arm64/nvidia",
    "AL2023_x86_64_NEURON": "x86_64/neuron",
}


def _eks_image(place: str) -> PublicImage:
    return PublicImage(
        f"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{place}/recommended/image_id",
        place.partition("/")[0],
        "/dev/xvda",
        f"EKS-optimized Amazon Linux 2023 ({place})",
        # The disk size that EKS gives a node without a launch template.
        # https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html
        20,
    )


EKS_IMAGES: Mapping[str, str] = {name: _eks_image(place).id for name, place in _EKS.items()}
"""The ids of EKS's images, by the type of image."""


# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
BATCH_IMAGE = PublicImage(
    "/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id",
    "x86_64",
    "/dev/xvda",
    "ECS-optimized Amazon Linux 2023 (gpu)",
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/al2-storage-config.html
    30,
)
"""The image that Batch takes for GPUs."""


def public_images() -> Iterator[PublicImage]:
    """Yield the Deep Learning, Neuron, EKS and ECS images."""
    yield BATCH_IMAGE
    yield from map(_eks_image, _EKS.values())
    for system, device in _ROOT_DEVICES.items():
        for architecture in ("x86_64", "arm64"):
            for flavour in ("base-oss-nvidia-driver-gpu", "base-with-single-cuda"):
                yield PublicImage(
                    f"/aws/service/deeplearning/ami/{architecture}/{flavour}-{system}/latest/ami-id",
                    architecture,
                    device,
                    f"Deep Learning {flavour} ({system}, {architecture})",
                )
        for flavour in ("base", "multi-framework"):
            yield PublicImage(
                f"/aws/service/neuron/dlami/{flavour}/{system}/latest/image_id",
                "x86_64",
                device,
                f"Deep Learning Neuron {flavour} ({system})",
            )


def pcs_images() -> Iterator[PublicImage]:
    """Yield the images for AWS PCS.

    https://docs.aws.amazon.com/pcs/latest/userguide/working-with_ami_pcs-ready-dlami.html
    """
    for architecture in ("x86_64", "arm64"):
        yield PublicImage(
            f"/aws/service/pcs/ami/dlami-base-ubuntu2404/{architecture}/latest/ami-id",
            architecture,
            "/dev/sda1",
            f"aws-pcs-ready-dlami-base-ubuntu2404-{architecture}",
        )


def prepare(account: str, region: str) -> None:
    """Put the images and their parameters into moto's backends of an account and region."""
    ec2: Any = ec2_backends[account][region]
    parameters = ssm_backends[account][region]._parameters
    for image in (*public_images(), *pcs_images()):
        ec2.amis[image.id] = Ami(
            ec2,
            image.id,
            name=image.name,
            owner_id="898082745236",
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture=image.architecture,
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=image.root_device,
            region_name=f"{region}a",
        )
        ec2.amis[image.id].ebs_snapshot.volume.size = image.snapshot_gib
        parameters[image.parameter].append(
            Parameter(
                account_id=account,
                name=image.parameter,
                value=image.id,
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=utcnow(),
                version=1,
                data_type="aws:ec2:image",
            )
        )

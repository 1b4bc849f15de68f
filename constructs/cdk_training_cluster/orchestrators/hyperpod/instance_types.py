"""The instance types that SageMaker HyperPod has.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html (InstanceType)
"""

import re

_ACCELERATED = re.compile(
    r"g4dn\.(?:[248]?xlarge|1[26]xlarge)|(?:g5|g6|g6e)\.(?:[248]?xlarge|(?:12|16|24|48)xlarge)|gr6\.[48]xlarge|"
    r"(?:g7|g7e)\.(?:[248]xlarge|(?:12|24|48)xlarge)|p4de?\.24xlarge|p5\.(?:4|48)xlarge|p5en?\.48xlarge|"
    r"p6-b[23]00\.48xlarge|p6e-gb200\.36xlarge|trn1n?\.32xlarge|trn2\.(?:3|48)xlarge"
)


def is_sold(instance_type: str) -> bool:
    """Tell whether HyperPod has an accelerated type.

    Args:
        instance_type: EC2's name of it, such as `p5.48xlarge`.
    """
    return _ACCELERATED.fullmatch(instance_type) is not None


def sagemaker_name(instance_type: str) -> str:
    """Return SageMaker's name of a type.

    Args:
        instance_type: EC2's name of it.
    """
    return f"ml.{instance_type}"

"""The form of a region's name, its partition, and whether AWS has it."""

from difflib import get_close_matches

REGION = (
    r"(?:af|ap|ca|cn|eu|eusc|il|me|mx|sa|us)(?:-gov|-iso[a-z]?|-de)?"
    r"-(?:central|east|north|northeast|northwest|south|southeast|southwest|west)-[0-9]+"
)
"""The name of a region: us-east-1, us-gov-west-1, ap-southeast-7, eusc-de-east-1. It names every word, so that a
misspelled region is refused before AWS is asked.

Source: https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html
"""

_PARTITIONS = {
    "cn": "aws-cn",
    "us-gov": "aws-us-gov",
    "us-isob": "aws-iso-b",
    "us-isof": "aws-iso-f",
    "us-iso": "aws-iso",
    "eu-isoe": "aws-iso-e",
    "eusc": "aws-eusc",
}


def partition_of(region: str) -> str:
    """Return the partition of a region.

    https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/partitions.html

    Args:
        region: The region.
    """
    return next((found for start, found in _PARTITIONS.items() if region.startswith(f"{start}-")), "aws")


def known_region(option: str, region: str) -> str:
    """Return a region that AWS has; one that is newer than botocore is refused as well.

    Args:
        option: The option that names it.
        region: The region.

    Raises:
        ValueError: botocore does not know it.
    """
    import boto3  # noqa: PLC0415 - for its list of regions

    session = boto3.session.Session()
    names = [
        name for each in session.get_available_partitions() for name in session.get_available_regions("ec2", each)
    ]
    if region not in names:
        near = " or ".join(get_close_matches(region, names, n=2))
        hint = f"; did you mean {near}?" if near else "; for a newer region, update boto3"
        raise ValueError(f"{option} must name a region of AWS, got {region!r}{hint}")
    return region

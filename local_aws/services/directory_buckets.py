"""Directory buckets of S3 Express One Zone: what S3 refuses at their creation, for which moto has no rule.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html,
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html and
https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import xmltodict  # type: ignore[import-untyped]
from moto.s3.exceptions import S3ClientError

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/endpoint-directory-buckets-AZ.html
ZONES: Mapping[str, tuple[str, ...]] = {
    "us-east-1": ("use1-az4", "use1-az5", "use1-az6"),
    "us-east-2": ("use2-az1", "use2-az2"),
    "us-west-2": ("usw2-az1", "usw2-az3", "usw2-az4"),
    "ap-south-1": ("aps1-az1", "aps1-az3"),
    "ap-northeast-1": ("apne1-az1", "apne1-az4"),
    "eu-west-1": ("euw1-az1", "euw1-az3"),
    "eu-north-1": ("eun1-az1", "eun1-az2", "eun1-az3"),
}
_NAME = re.compile(r"(?=.{3,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?--([a-z0-9-]+)--x-s3")


def checked(put: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a directory bucket that S3 cannot make, before moto makes it.

    Args:
        put: moto's answer to requests that change a bucket.
    """

    def answer(response: Any, request: Any, bucket_name: str, querystring: dict[str, Any]) -> Any:
        if querystring or not bucket_name.endswith("--x-s3"):
            return put(response, request, bucket_name, querystring)
        _refuse(bucket_name, _configuration(response.body), response.region)
        # moto knows where a bucket is from the location constraint alone.
        asked, response.body = response.body, _constraint(response.region)
        try:
            return put(response, request, bucket_name, querystring)
        finally:
            response.body = asked

    return answer


def others_alone(list_buckets: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Leave directory buckets out of ListBuckets; S3 lists them with ListDirectoryBuckets.

    Args:
        list_buckets: moto's own, which lists all.
    """

    def answer(backend: Any, **filters: Any) -> list[Any]:
        return [bucket for bucket in list_buckets(backend, **filters) if not bucket.name.endswith("--x-s3")]

    return answer


def _configuration(body: Any) -> Mapping[str, Any]:
    return (xmltodict.parse(body) if body else {}).get("CreateBucketConfiguration") or {}


def _constraint(region: str) -> str:
    constraint = "" if region == "us-east-1" else f"<LocationConstraint>{region}</LocationConstraint>"
    return f"<CreateBucketConfiguration>{constraint or '<None/>'}</CreateBucketConfiguration>"


def _refuse(name: str, configuration: Mapping[str, Any], region: str) -> None:
    found = _NAME.fullmatch(name)
    location = configuration.get("Location") or {}
    if found is None or found[1] != location.get("Name"):
        raise S3ClientError("InvalidBucketName", "The specified bucket is not valid.")
    if location.get("Type") != "AvailabilityZone" or found[1] not in ZONES.get(region, ()):
        raise S3ClientError("InvalidLocationConstraint", "The specified location-constraint is not valid")

"""What the whole local AWS has in common: its account, its region and the credentials that open it."""

import base64
import hashlib
import os
from collections.abc import Mapping

ACCOUNT = "123456789012"
REGION = "us-east-1"
HOST = "localhost"

# AWS's own example access key: it opens nothing anywhere.
ACCESS_KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET_ACCESS_KEY = "rehearsal-only"  # noqa: S105 - opens nothing; the server accepts any

# Settings of the user's that could lead a client away from localhost, or a server to behave otherwise.
_FOREIGN_PREFIXES = ("AWS_", "MOTO_", "BOTO_", "CDK_")
# This one says how thoroughly an app is checked, and nothing about AWS.
_KEPT_NAMES = frozenset({"CDK_VALIDATION"})
_FOREIGN_NAMES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy", "test_server_mode"})


def without_aws_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without anything that configures AWS, its SDKs, the CDK CLI or a proxy."""
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT_NAMES
        or (not name.upper().startswith(_FOREIGN_PREFIXES) and name.lower() not in _FOREIGN_NAMES)
    }


def access_key_of(role_arn: str) -> str:
    """Return the access key of a function's credentials, which tell the role that it runs with.

    Args:
        role_arn: The role.
    """
    digest = hashlib.sha256(role_arn.encode()).digest()
    return f"ASIA{base64.b32encode(digest).decode()[:16]}"


def for_directory_buckets(endpoint_url: str) -> str:
    """Return where clients reach directory buckets: they put the bucket's name into the path for an address alone.

    Args:
        endpoint_url: Where the local AWS answers.
    """
    return endpoint_url.replace(HOST, "127.0.0.1")


def for_clients(endpoint_url: str, region: str) -> dict[str, str]:
    """Return the variables that let a process's AWS clients talk to the local AWS only.

    Args:
        endpoint_url: Where it answers.
        region: The region whose resources they see.
    """
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "localhost,127.0.0.1",
        "no_proxy": "localhost,127.0.0.1",
    }

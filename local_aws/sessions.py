"""boto3 clients that only ever talk to the local AWS, whatever this process's environment holds."""

import os
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import botocore.config
import botocore.session
from botocore.configprovider import (
    BOTOCORE_DEFAUT_SESSION_VARIABLES,
    ConfigValueStore,
    ConstantProvider,
)

from local_aws import defaults

# Each session of boto3 would read its services' models anew; moto makes one for each service, to learn its regions.
botocore.session.create_loader = cache(botocore.session.create_loader)

_lock = Lock()


@lru_cache
def _session() -> botocore.session.Session:
    """Make a session whose every setting has botocore's default instead of the user's environment or files."""
    # botocore spells the name of its table of settings like this.
    values = {name: default for name, (_, _, default, _) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()}
    values |= {"config_file": os.devnull, "credentials_file": os.devnull}
    session = botocore.session.Session()
    store = ConfigValueStore(mapping={name: ConstantProvider(value) for name, value in values.items()})
    session.register_component("config_store", store)
    return session


@lru_cache
def regions() -> tuple[str, ...]:
    """Return the regions that have EC2, of every partition that is open to customers."""
    partitions = ("aws", "aws-us-gov", "aws-cn")
    return tuple(sorted(name for each in partitions for name in _session().get_available_regions("ec2", each)))


DIRECTORY_BUCKETS = "s3express"
"""What asks `client` for a client of S3 that reaches directory buckets."""


def client(service: str, endpoint_url: str, region: str = defaults.REGION) -> Any:
    """Return a client of `service` at `endpoint_url` that makes one attempt and uses no proxy.

    Args:
        service: The service's name in boto3, such as "ec2".
        endpoint_url: Where the local AWS answers.
        region: The region whose resources the client sees.
    """
    config = botocore.config.Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        proxies={},
        read_timeout=300,
        use_fips_endpoint=False,
        use_dualstack_endpoint=False,
        # No session is needed here to reach a directory bucket.
        s3={"addressing_style": "path", "disable_s3_express_session_auth": True},  # type: ignore[arg-type]  # the stubs lack it
    )
    if service == DIRECTORY_BUCKETS:
        service, endpoint_url = "s3", defaults.for_directory_buckets(endpoint_url)
    with _lock:  # a botocore session builds one client at a time
        return _session().create_client(
            service,
            region_name=region,
            endpoint_url=endpoint_url,
            aws_access_key_id=defaults.ACCESS_KEY_ID,
            aws_secret_access_key=defaults.SECRET_ACCESS_KEY,
            config=config,
        )

"""A local AWS that refuses what AWS refuses: moto's services and a CloudFormation engine, on localhost only."""

from local_aws.client import LocalAws, LocalAwsError

__all__ = ["LocalAws", "LocalAwsError"]

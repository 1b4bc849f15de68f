"""What an On-Demand Instance costs an hour: a snapshot, for planning, of a public data set.

Source: skypilot-org/skypilot-catalog, `catalogs/v8/aws/vms.csv`, commit
00148f2af3672e2229b4f7bf8157d5a3f36e3c35, whose date is not given. Two of its prices agree with the AWS Price List as
quoted on 2026-07-13. What the data set does not know is not here: a price that is not known is not zero. The live
source is the AWS Price List API:
https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/price-changes.html
"""

from collections.abc import Mapping

ON_DEMAND_USD_PER_HOUR: Mapping[str, Mapping[str, float]] = {
    "g4dn.12xlarge": {
        "ap-northeast-1": 5.281,
        "eu-central-1": 4.89,
        "eu-west-1": 4.362,
        "us-east-1": 3.912,
        "us-east-2": 3.912,
        "us-west-2": 3.912,
    },
    "g4dn.xlarge": {
        "ap-northeast-1": 0.71,
        "eu-central-1": 0.658,
        "eu-west-1": 0.587,
        "us-east-1": 0.526,
        "us-east-2": 0.526,
        "us-west-2": 0.526,
    },
    "g5.12xlarge": {
        "ap-northeast-1": 8.22609,
        "eu-central-1": 7.09282,
        "eu-west-1": 6.33167,
        "us-east-1": 5.672,
        "us-east-2": 5.672,
        "us-west-2": 5.672,
    },
    "g5.48xlarge": {
        "ap-northeast-1": 23.62246,
        "eu-central-1": 20.3681,
        "eu-west-1": 18.18233,
        "us-east-1": 16.288,
        "us-east-2": 16.288,
        "us-west-2": 16.288,
    },
    "g5.xlarge": {
        "ap-northeast-1": 1.459,
        "eu-central-1": 1.258,
        "eu-west-1": 1.123,
        "us-east-1": 1.006,
        "us-east-2": 1.006,
        "us-west-2": 1.006,
    },
    "g6.12xlarge": {
        "ap-northeast-1": 6.67369,
        "eu-central-1": 5.75429,
        "us-east-1": 4.6016,
        "us-east-2": 4.6016,
        "us-west-2": 4.6016,
    },
    "g6.48xlarge": {
        "ap-northeast-1": 19.36206,
        "eu-central-1": 16.69464,
        "us-east-1": 13.3504,
        "us-east-2": 13.3504,
        "us-west-2": 13.3504,
    },
    "g6.xlarge": {
        "ap-northeast-1": 1.1672,
        "eu-central-1": 1.0064,
        "us-east-1": 0.8048,
        "us-east-2": 0.8048,
        "us-west-2": 0.8048,
    },
    "g6e.12xlarge": {
        "ap-northeast-1": 15.21742,
        "eu-central-1": 13.12002,
        "us-east-1": 10.49264,
        "us-east-2": 10.49264,
        "us-west-2": 10.49264,
    },
    "g6e.48xlarge": {
        "ap-northeast-1": 43.69912,
        "eu-central-1": 37.67612,
        "us-east-1": 30.13118,
        "us-east-2": 30.13118,
        "us-west-2": 30.13118,
    },
    "g6e.xlarge": {
        "ap-northeast-1": 2.699,
        "eu-central-1": 2.327,
        "us-east-1": 1.861,
        "us-east-2": 1.861,
        "us-west-2": 1.861,
    },
    "inf2.48xlarge": {
        "ap-northeast-1": 19.4719,
        "eu-central-1": 19.4719,
        "eu-west-1": 16.22658,
        "us-east-1": 12.98127,
        "us-east-2": 12.98127,
        "us-west-2": 12.98127,
    },
    "inf2.xlarge": {
        "ap-northeast-1": 1.1373,
        "eu-central-1": 1.1373,
        "eu-west-1": 0.94775,
        "us-east-1": 0.7582,
        "us-east-2": 0.7582,
        "us-west-2": 0.7582,
    },
    "p3.2xlarge": {
        "ap-northeast-1": 4.194,
        "ap-northeast-2": 4.234,
        "ap-southeast-1": 4.234,
        "ap-southeast-2": 4.234,
        "ca-central-1": 3.366,
        "eu-central-1": 3.823,
        "eu-west-1": 3.305,
        "eu-west-2": 3.589,
        "us-east-1": 3.06,
        "us-east-2": 3.06,
        "us-west-2": 3.06,
    },
    "p3dn.24xlarge": {
        "ap-northeast-1": 42.783,
        "eu-west-1": 33.711,
        "us-east-1": 31.212,
        "us-west-2": 31.212,
    },
    "p4d.24xlarge": {
        "ap-northeast-1": 30.09784,
        "ap-northeast-2": 30.41028,
        "ap-south-1": 26.3444,
        "ap-southeast-2": 28.54493,
        "ca-central-1": 25.25174,
        "eu-central-1": 27.43298,
        "eu-north-1": 23.71569,
        "eu-west-1": 23.71569,
        "eu-west-2": 28.54493,
        "us-east-1": 21.957642,
        "us-east-2": 21.95764,
        "us-west-2": 21.95764,
    },
    "p4de.24xlarge": {
        "ap-northeast-1": 37.6223,
        "ap-southeast-1": 32.93646,
        "eu-central-1": 34.29122,
        "us-east-1": 27.44705,
        "us-west-2": 27.44705,
    },
    "p5.48xlarge": {
        "ap-northeast-1": 68.8,
        "ap-northeast-2": 75.9552,
        "ap-south-1": 66.048,
        "ap-southeast-2": 71.552,
        "ap-southeast-3": 75.9552,
        "ca-central-1": 63.296,
        "eu-north-1": 58.8928,
        "eu-west-2": 71.552,
        "us-east-1": 55.04,
        "us-east-2": 55.04,
        "us-west-1": 68.8,
        "us-west-2": 55.04,
    },
    "p5.4xlarge": {
        "ap-northeast-1": 8.6,
        "ap-south-1": 8.256,
        "ap-southeast-2": 8.944,
        "ap-southeast-3": 9.4944,
        "eu-west-2": 8.944,
        "us-east-1": 6.88,
        "us-east-2": 6.88,
        "us-west-2": 6.88,
    },
    "p5en.48xlarge": {
        "ap-northeast-1": 79.12,
        "ap-northeast-2": 87.34848,
        "ap-south-1": 75.9552,
        "ap-southeast-3": 87.34848,
        "eu-north-1": 67.72672,
        "eu-south-2": 68.35968,
        "me-central-1": 75.9552,
        "us-east-1": 63.296,
        "us-east-2": 63.296,
        "us-west-1": 79.12,
        "us-west-2": 63.296,
    },
    "p6-b200.48xlarge": {
        "us-east-1": 113.9328,
        "us-east-2": 113.9328,
        "us-west-2": 113.9328,
    },
    "p6-b300.48xlarge": {
        "us-west-2": 142.416,
    },
    "trn1.2xlarge": {
        "us-east-1": 1.34375,
        "us-east-2": 1.34375,
        "us-west-2": 1.34375,
    },
    "trn1.32xlarge": {
        "us-east-1": 21.5,
        "us-east-2": 21.5,
        "us-west-2": 21.5,
    },
    "trn1n.32xlarge": {
        "us-east-1": 24.78,
        "us-east-2": 24.78,
        "us-west-2": 24.78,
    },
}
"""By instance type and region."""


def price(instance_type: str, region: str, overrides: Mapping[str, float]) -> float | None:
    """Return what an instance costs an hour, in USD. None: nobody knows.

    Args:
        instance_type: Its type.
        region: The region it runs in.
        overrides: Prices by instance type that are known better.
    """
    if instance_type in overrides:
        return overrides[instance_type]
    return ON_DEMAND_USD_PER_HOUR.get(instance_type, {}).get(region)

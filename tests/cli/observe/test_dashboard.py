"""The address of a cluster's dashboard."""

import pytest

from cdk_training_cluster_cli.pictures.dashboard import console_url


@pytest.mark.parametrize(
    ("region", "console"),
    [
        ("eu-west-1", "https://eu-west-1.console.aws.amazon.com"),
        ("cn-north-1", "https://cn-north-1.console.amazonaws.cn"),
        ("us-gov-west-1", "https://us-gov-west-1.console.amazonaws-us-gov.com"),
    ],
)
def test_each_partition_has_a_console_of_its_own(region: str, console: str) -> None:
    expected = f"{console}/cloudwatch/home?region={region}#dashboards/dashboard/pod-It"
    assert console_url("pod-It", region) == expected


def test_a_partition_whose_console_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match=r"^the console of the partition aws-iso is not known: open "):
        console_url("pod", "us-iso-east-1")

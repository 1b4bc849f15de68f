from importlib.metadata import version

import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Template

from cdk_training_cluster.functions import POWERTOOLS_VERSION, powertools_layer
from synthesis import new_stack


def layer(stack: Stack) -> object:
    return stack.resolve(powertools_layer(stack, "Layer").layer_version_arn)


def test_the_tests_run_with_the_version_that_is_in_the_layer() -> None:
    assert version("aws-lambda-powertools") == POWERTOOLS_VERSION


@pytest.mark.parametrize(
    ("region", "arn"),
    [
        ("us-east-1", "arn:aws:lambda:us-east-1:017000801446:layer:"),
        ("eu-central-2", "arn:aws:lambda:eu-central-2:017000801446:layer:"),
        ("cn-north-1", "arn:aws-cn:lambda:cn-north-1:498634801083:layer:"),
        ("us-gov-east-1", "arn:aws-us-gov:lambda:us-gov-east-1:165087284144:layer:"),
        ("us-gov-west-1", "arn:aws-us-gov:lambda:us-gov-west-1:165093116878:layer:"),
    ],
)
def test_the_layer_of_a_region(region: str, arn: str) -> None:
    assert layer(new_stack(region=region)) == f"{arn}AWSLambdaPowertoolsPythonV3-python314-arm64:27"


@pytest.mark.parametrize("region", ["cn-northwest-1", "us-iso-east-1", "mars-1"])
def test_a_region_without_the_layer_is_refused(region: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        layer(new_stack(region=region))

    assert str(caught.value) == (
        f"powertools_layer is required in the region {region}: AWS is not known to publish Powertools 3.23.0 there; "
        "give a layer of your own that holds it, for Python 3.14 on arm64 (powertools_layer_arn in a cluster file)"
    )


def test_a_stack_without_a_region_looks_the_publisher_up_at_deployment() -> None:
    stack = new_stack(region=None)
    first, second = layer(stack), stack.resolve(powertools_layer(stack, "Other").layer_version_arn)

    assert first == second
    assert first == {
        "Fn::Join": [
            "",
            [
                "arn:",
                {"Ref": "AWS::Partition"},
                ":lambda:",
                {"Ref": "AWS::Region"},
                ":",
                {"Fn::FindInMap": ["PowertoolsLayerAccounts", {"Ref": "AWS::Region"}, "Account"]},
                ":layer:AWSLambdaPowertoolsPythonV3-python314-arm64:27",
            ],
        ]
    }
    accounts = Template.from_stack(stack).to_json()["Mappings"]["PowertoolsLayerAccounts"]
    assert accounts["us-west-2"] == {"Account": "017000801446"}
    assert accounts["us-gov-west-1"] == {"Account": "165093116878"}
    assert accounts["cn-north-1"] == {"Account": "498634801083"}
    assert "cn-northwest-1" not in accounts

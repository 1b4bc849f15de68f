"""Clusters in GovCloud and in China: what a template says must be right in their partitions."""

import json
import re
from pathlib import Path

import pytest
from aws_cdk import Stack
from aws_cdk.assertions import Template
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks
from examples import PROJECT


@pytest.mark.parametrize(
    ("region", "partition", "layer"),
    [
        ("us-gov-west-1", "aws-us-gov", None),
        ("cn-northwest-1", "aws-cn", "arn:aws-cn:lambda:cn-northwest-1:111122223333:layer:powertools:1"),
    ],
)
def test_a_template_names_no_other_partition_and_only_what_the_region_has(
    region: str, partition: str, layer: str | None, tmp_path: Path
) -> None:
    text = (PROJECT / "clusters" / "p4de.yaml").read_text()
    text = text.replace("us-east-1b", f"{region}a").replace("p4de.24xlarge", "p4d.24xlarge")
    (tmp_path / "pod.yaml").write_text(text + (f"powertools_layer_arn: {layer}\n" if layer else ""))
    with built_stacks(read_cluster_file(tmp_path / "pod.yaml")) as (app, _):
        templates = [Template.from_stack(stack).to_json() for stack in app.node.children if isinstance(stack, Stack)]
    said = json.dumps(templates)
    assert set(re.findall(r"arn:(aws[a-z-]*):", said)) <= {partition}
    assert not re.search(r"us-east-1|us-west-2|amazonaws\.com/", said)
    types = {resource["Type"] for template in templates for resource in template["Resources"].values()}
    for each in types:
        PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, each)

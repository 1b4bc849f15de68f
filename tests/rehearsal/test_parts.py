"""Every optional part of a cluster file is deployed and taken away again, with the real CDK CLI."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cdk_training_cluster_file import ClusterFile, read_cluster_file
from local_aws import LocalAws
from rehearsal.cdk_cli import CdkCli
from rehearsal.parts import PARTS, STAYING, PartsRemoval, without_parts
from rehearsal.preparation import prepare

_BUCKET = "my-training-data"
_FILE = f"""
name: whole
availability_zone: us-east-1b
file_system: {{}}
datasets: [{{bucket: {_BUCKET}, prefix: tokens/, file_system_path: /tokens}}, {{file_system_path: /made}}]
access_logs: {{bucket: my-access-logs}}
checkpoints: {{}}
idle: {{window_minutes: 90}}
schedule: {{windows: [weekdays 08:00-20:00 Europe/Berlin]}}
health: {{act: true}}
observability: {{prometheus: {{}}}}
dashboard: false
acknowledge: {{latestImage: each new image is tried}}
tags: {{team: ml-platform}}
budget: {{monthly_usd: 20000}}
powertools_layer_arn: arn:aws:lambda:us-east-1:111122223333:layer:powertools:1
alerts: {{emails: [ml-platform@example.com]}}
node_groups:
  - name: workers
    instance_types: [p5.48xlarge]
    count: 2
    image: latest
    warm_pool: {{size: 1}}
    idle: {{window_minutes: 120}}
  - name: held
    instance_types: [p5.48xlarge]
    count: 1
    image: latest
    capacity: {{reservation: {{end: until_cancelled}}}}
  - {{name: extras, instance_types: [g5.xlarge], count: 2, image: latest, capacity: spot_fleet}}
"""


@pytest.mark.sweep("rehearse CLUSTER=clusters/base-pod.yaml")
def test_every_optional_part_can_be_taken_away_and_leaves_what_holds_data(tmp_path: Path) -> None:
    whole = tmp_path / "whole.yaml"
    whole.write_text(_FILE)
    files = list(without_parts(whole, tmp_path, "parts"))
    assert [part for part, _ in files[1:]] == list(PARTS)
    fields = ClusterFile.model_fields
    # An orchestrator takes neither Spot Fleets nor warm pools; base-pod's is taken away by `make rehearse`.
    assert yaml.safe_load(_FILE).keys() == fields.keys() - STAYING.keys() - {"orchestrator"}
    left = {name for name, field in fields.items() if field.is_required()}
    assert yaml.safe_load(files[-1][1].read_text()).keys() == {*left, "idle", "termination_protection"}
    with LocalAws(tmp_path / "local-aws.log") as aws:
        prepare(read_cluster_file(whole), aws)
        cdk = CdkCli(
            environment=aws.environment(),
            cluster_file=whole,
            output=tmp_path / "cdk.out",
            log=tmp_path / "cdk.log",
            account=aws.account,
            region=aws.region,
        )
        cdk.bootstrap()
        removal = PartsRemoval(aws.client, lambda file: replace(cdk, cluster_file=file))
        assert [sentence for part, file in files for sentence in removal.remove(part, file)] == []
        (exports,) = [
            {export["Name"].rpartition(":")[2] for export in page["Exports"]}
            for page in aws.client("cloudformation").get_paginator("list_exports").paginate()
        ]
        assert not [name for name in exports if "FileSystem" in name]
        removal.destroy(files[-1][1])
        assert len(aws.client("s3").list_buckets()["Buckets"]) == 5  # CDK's own, the user's two, and the two made

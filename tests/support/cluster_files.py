"""A right cluster file to make mistakes in, and what is said of one."""

from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.problems import ClusterFileError

RIGHT = """\
name: pod
availability_zone: us-east-1b
file_system: {}
datasets:
  - file_system_path: /data
    prefix: tokens/
node_groups:
  - name: workers
    instance_types: [p5.48xlarge]
    count: 8
    image: latest
"""


def problems(directory: Path, text: str) -> list[str]:
    (directory / "cluster.yaml").write_text(text)
    return read_problems(directory, "cluster.yaml")


def read_problems(directory: Path, name: str) -> list[str]:
    with pytest.raises(ClusterFileError) as error:
        read_cluster_file(name, relative_to=directory)
    return str(error.value).split("\n")

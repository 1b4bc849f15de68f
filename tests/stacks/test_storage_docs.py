"""The examples of docs/storage.md: every file system there can be made."""

import re
from pathlib import Path

import pytest

from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.plan import shape_of
from examples import PROJECT

_CLUSTER = """\
name: docs
availability_zone: us-east-1b
node_groups:
  - {name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}
"""

_BLOCKS = re.findall(
    r"^```yaml\n((?:network|file_system):.*?)^```", (PROJECT / "docs/storage.md").read_text(), re.DOTALL | re.M
)


@pytest.mark.parametrize("block", _BLOCKS, ids=range(len(_BLOCKS)))
def test_a_file_system_of_the_docs_is_one_that_fsx_makes(tmp_path: Path, block: str) -> None:
    (tmp_path / "cluster.yaml").write_text(_CLUSTER + block)
    assert shape_of(read_cluster_file(tmp_path / "cluster.yaml")).has_file_system

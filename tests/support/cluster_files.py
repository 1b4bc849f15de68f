"""A right cluster file to make mistakes in, and what is said of one."""

from pathlib import Path

from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.problems import ClusterFileError

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

FACTS = (
    "{name: p9.large, vcpus: 2, memory_mib: 4, architectures: [x86_64], network_cards: [{index: 0, interface_types: "
    "[interface], baseline_gbps: 10}]}"
)


def problems(directory: Path, text: str, *, legal: bool = False) -> list[str]:
    (directory / "cluster.yaml").write_text(text)
    return read_problems(directory, "cluster.yaml", legal=legal)


def read_problems(directory: Path, name: str, *, legal: bool = False) -> list[str]:
    """Return what is said of a file that is wrong, unless it is said to be legal."""
    try:
        read_cluster_file(name, relative_to=directory)
    except ClusterFileError as error:
        return str(error).split("\n")
    assert legal, "nothing is said of the file"
    return []

"""The folder on disk: the same bytes each time, nothing of its user's lost, and kustomize builds it."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cdk_training_cluster import Capacity
from cdk_training_cluster_cli.files.deployed_values import deployed_values
from cdk_training_cluster_cli.files.manifests import run
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_manifests.kubernetes import generated_files, write_folder
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.overlay import deployed_env, overlay_files, places
from cdk_training_cluster_manifests.kubernetes.reading import known_values, wanted_of
from kubernetes_folder import FOLDERS, WORKERS, objects, wanted

KNOWN = {
    "FILE_SYSTEM_ID": "fs-0a1b2c3d4e5f67890",
    "FILE_SYSTEM_DNS_NAME": "fs.example",
    "FILE_SYSTEM_MOUNT_NAME": "abc",
}

every_folder = pytest.mark.parametrize("cluster", [pytest.param(each, id=name) for name, each in FOLDERS.items()])


def _write(cluster: KubernetesCluster, directory: Path, *, force: bool = False) -> tuple[list[str], list[str]]:
    written = write_folder(directory, generated_files(cluster), overlay_files(cluster, KNOWN), force=force)
    return list(written.changed), list(written.removed)


def _texts(directory: Path) -> Mapping[str, bytes]:
    return {str(each.relative_to(directory)): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


@every_folder
def test_the_second_generation_changes_nothing(cluster: KubernetesCluster, tmp_path: Path) -> None:
    _write(cluster, tmp_path)
    before = _texts(tmp_path)
    assert _write(cluster, tmp_path) == ([], [])
    assert _texts(tmp_path) == before


def test_what_is_generated_no_longer_goes_and_the_overlay_stays(tmp_path: Path) -> None:
    _write(FOLDERS["everything"], tmp_path)
    own = tmp_path / "overlay" / "deployed.env"
    own.write_text("FILE_SYSTEM_ID=mine\n")
    _, removed = _write(FOLDERS["workers"], tmp_path)
    assert "argocd/applications.yaml" in removed
    assert "manifests/node-pools.yaml" in removed
    assert not (tmp_path / "argocd" / "applications.yaml").exists()
    assert own.read_text() == "FILE_SYSTEM_ID=mine\n"


@pytest.mark.parametrize("path", ["helmfile.yaml", "values/kueue.yaml"])
def test_what_was_changed_by_hand_is_overwritten_by_force_only(path: str, tmp_path: Path) -> None:
    cluster = FOLDERS["workers"]
    _write(cluster, tmp_path)
    (tmp_path / path).write_text("mine\n")
    before = _texts(tmp_path)
    with pytest.raises(
        ValueError, match=f"has files that were changed by hand: {path}. Put the changes into its overlay"
    ):
        _write(wanted(karpenter=True), tmp_path)
    assert _texts(tmp_path) == before
    assert _write(cluster, tmp_path, force=True) == ([path], [])


def test_a_file_of_another_origin_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("my clusters\n")
    with pytest.raises(ValueError, match=r"changed by hand: README\.md"):
        _write(FOLDERS["workers"], tmp_path)


@pytest.mark.parametrize("text", ["[", "[]", '{"../../etc/passwd": "0"}'])
def test_a_record_that_is_not_ours_removes_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / ".generated.json").write_text(text)
    with pytest.raises(ValueError, match=r"\.generated\.json is not what training-cluster manifests has written"):
        _write(FOLDERS["workers"], tmp_path)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which builds the folder, is not installed")
@every_folder
def test_kustomize_builds_the_overlay_with_the_deployed_values(cluster: KubernetesCluster, tmp_path: Path) -> None:
    _write(cluster, tmp_path)
    text = subprocess.run(
        ["kubectl", "kustomize", str(tmp_path / "overlay")], check=True, capture_output=True, text=True
    ).stdout
    made = list(yaml.safe_load_all(text))
    claimed = [each["spec"] for each in made if each["kind"] == "PersistentVolume"]
    assert all({"nosuid", "nodev"} <= set(each["mountOptions"]) for each in claimed)
    volumes = [each["csi"] for each in claimed]
    mounted = [each.namespace for each in cluster.teams if cluster.file_system is not None]
    assert [each["volumeHandle"] for each in volumes] == ["fs-0a1b2c3d4e5f67890"] * len(mounted)
    assert {each["volumeAttributes"]["mountname"] for each in volumes} == ({"abc"} if mounted else set())
    programs = {each["metadata"]["namespace"] for each in made if each["metadata"]["name"] == "workspace"}
    assert programs == {each.namespace for each in cluster.teams} - {*mounted}
    for each in made:
        if each["kind"] == "EC2NodeClass":
            assert each["spec"]["role"] == "fill-in-node-role-name"


def test_the_command_writes_the_folder_of_an_example(tmp_path: Path) -> None:
    lines = list(run(Path("clusters/base-pod.yaml"), tmp_path, from_deployed=False, force=False, profile=None))
    assert lines == [str(tmp_path / path) for path in sorted(_texts(tmp_path)) if path != ".generated.json"]
    runtime = yaml.safe_load((tmp_path / "manifests" / "runtimes.yaml").read_text())
    assert runtime["metadata"] == {
        "name": "workers",
        "namespace": "training",
        "labels": {"trainer.kubeflow.org/framework": "torch"},
    }


def test_the_page_says_how_nodes_start_and_whose_program_a_job_runs() -> None:
    page = generated_files(wanted())["README.md"]
    assert "`kubectl create -f jobs/nccl-test-workers.yaml` starts a job" in page
    assert "it waits for `training-cluster start <file>`" in page
    assert "runs your `/fsx/train.py`" in page
    assert "`private_access_cidrs` or `public_access_cidrs`" in page
    assert "training-cluster start" not in generated_files(wanted(karpenter=True))["README.md"]


def test_without_a_file_system_a_job_runs_the_program_of_the_overlay() -> None:
    cluster = FOLDERS["alone"]
    (runtime,) = objects(cluster, "TrainingRuntime")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    (volume,) = (each for each in pod["volumes"] if "configMap" in each)
    (container,) = pod["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == volume["name"])
    overlay = overlay_files(cluster, {})
    (made,) = yaml.safe_load(overlay["overlay/kustomization.yaml"])["configMapGenerator"]
    assert (made["name"], made["namespace"]) == (volume["configMap"]["name"], runtime["metadata"]["namespace"])
    (file,) = made["files"]
    program = overlay[f"overlay/{file}"]
    compile(program, file, "exec")
    assert "fully_shard" in program
    commands = [each["spec"]["trainer"]["command"] for each in objects(cluster, "TrainJob")]
    assert f"{mount['mountPath']}/{file}" in [command[-1] for command in commands]
    assert f"runs your `{mount['mountPath']}/{file}`: it is `overlay/{file}`" in generated_files(cluster)["README.md"]
    assert "overlay/train.py" not in overlay_files(wanted(), {})


def test_the_page_says_which_nodes_karpenter_waits_for_and_leaves() -> None:
    block = replace(WORKERS, name="block", capacity=Capacity.capacity_block("cr-0a1b2c3d4e5f67890"))
    made = replace(WORKERS, name="made", capacity=Capacity.reservation(end=datetime(2027, 1, 1, tzinfo=UTC)))
    page = generated_files(wanted(block, made, karpenter=True))["README.md"]
    assert "into its Capacity Block alone: pods wait until the block is active" in page
    assert "Karpenter launches no nodes of made, which is bought with `Capacity.reservation()`" in page


def test_nodes_of_karpenter_have_the_security_group_and_the_tag_by_which_they_are_found() -> None:
    cluster = wanted(karpenter=True)
    (made,) = objects(cluster, "EC2NodeClass")
    assert {"id": "NODE_SECURITY_GROUP_ID"} in made["spec"]["securityGroupSelectorTerms"]
    assert made["spec"]["tags"] == {"cdk-training-cluster:cluster": cluster.name}
    overlay = overlay_files(cluster, {"NODE_SECURITY_GROUP_ID": "sg-2"})
    assert "NODE_SECURITY_GROUP_ID=sg-2" in overlay["overlay/deployed.env"]


def test_karpenter_finds_a_type_for_each_job_and_knows_its_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    example = Path("clusters/base-pod.yaml").read_text(encoding="utf-8")
    assert "hugepages-" in str(generated_files(wanted_of(read_cluster_file("clusters/base-pod.yaml"))))
    file.write_text(example.replace("control_plane_zone:", "kubernetes: {karpenter: true}\n    control_plane_zone:"))
    files = generated_files(wanted_of(read_cluster_file(file)))
    assert "hugepages-" not in str(files)
    assert "FI_EFA_USE_HUGE_PAGE" in files["manifests/runtimes.yaml"]
    assert yaml.safe_load(files["values/karpenter.yaml"])["settings"]["clusterName"] == "base-pod"


def test_argo_cd_tries_the_manifests_until_the_charts_are_there() -> None:
    applications = yaml.safe_load_all(generated_files(FOLDERS["everything"])["argocd/applications.yaml"])
    for each in applications:
        policy = each["spec"]["syncPolicy"]
        assert "SkipDryRunOnMissingResource=true" in policy["syncOptions"]
        assert policy["retry"]["limit"] < 0


def test_a_file_system_that_grows_changes_no_claim() -> None:
    cluster = read_cluster_file("clusters/base-pod.yaml")
    assert cluster.file_system is not None
    grown = cluster.file_system.model_copy(update={"storage_capacity_gib": 7200})
    assert cluster.file_system.storage_capacity_gib != grown.storage_capacity_gib
    changed = cluster.model_copy(update={"file_system": grown})
    assert generated_files(wanted_of(changed)) == generated_files(wanted_of(cluster))


def test_each_value_that_is_not_known_says_how_it_is_found() -> None:
    names = places(FOLDERS["everything"])
    lines = deployed_env(names, {}).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"{name}=fill-in-{name.lower().replace('_', '-')}" for name in names
    ]
    how = [before for before, line in pairwise(lines) if "=fill-in" in line]
    assert all(any(said in each for said in (" output ", "same answer", ": aws ", "https://")) for each in how)
    assert places(replace(wanted(), file_system=None)) == []


def test_a_cluster_without_kubernetes_is_refused_with_what_to_write() -> None:
    with pytest.raises(ValueError, match="runs no jobs on Kubernetes: write orchestrator: eks"):
        wanted_of(read_cluster_file("clusters/p5-reservation.yaml"))


_HYPERPOD = """\
name: pod
availability_zone: us-east-1b
orchestrator:
  hyperpod:
    orchestrator: eks
    eks_cluster_arn: arn:aws:eks:us-east-1:111122223333:cluster/training
    eks_security_group_id: sg-0a1b2c3d4e5f67890
    kubernetes: {karpenter: false}
file_system: {existing: {file_system_id: fs-0a1b2c3d4e5f67890, mount_name: abcdefgh}}
network: {vpc_id: vpc-0a1b2c3d4e5f67890, subnet_id: subnet-0a1b2c3d4e5f67890}
node_groups:
  - {name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}
"""


def test_on_hyperpod_its_own_chart_brings_the_plugins_and_its_label_finds_nodes(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(_HYPERPOD)
    cluster = read_cluster_file(file)
    files = generated_files(wanted_of(cluster))
    assert [path for path in files if path.startswith("values/")] == [
        "values/kueue.yaml",
        "values/trainer.yaml",
        "values/dcgm-exporter.yaml",
    ]
    assert "sagemaker.amazonaws.com/instance-group-name: workers" in files["manifests/runtimes.yaml"]
    assert "key: sagemaker.amazonaws.com/instance-group-name" in files["manifests/drained-nodes.yaml"]
    assert known_values(cluster) == {
        "FILE_SYSTEM_ID": "fs-0a1b2c3d4e5f67890",
        "FILE_SYSTEM_DNS_NAME": "fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com",
        "FILE_SYSTEM_MOUNT_NAME": "abcdefgh",
    }
    file.write_text(_HYPERPOD.replace("karpenter: false", "karpenter: true"))
    with pytest.raises(ValueError, match="karpenter must be left out with HyperPod"):
        wanted_of(read_cluster_file(file))


class _Answers:
    """Answers of AWS for a deployed cluster."""

    def describe_stacks(self, **_: Any) -> Any:
        outputs = {
            "FileSystemId": "fs-1",
            "NodeSecurityGroupId": "sg-2",
            "NodeSubnetId": "subnet-1",
            "VpcId": "vpc-1",
        }
        return {"Stacks": [{"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]}]}

    def describe_file_systems(self, **_: Any) -> Any:
        return {"FileSystems": [{"DNSName": "fs-1.fsx", "LustreConfiguration": {"MountName": "abc"}}]}

    def describe_cluster(self, **_: Any) -> Any:
        return {"cluster": {"resourcesVpcConfig": {"vpcId": "vpc-1", "clusterSecurityGroupId": "sg-1"}}}

    def list_nodegroups(self, **_: Any) -> Any:
        return {"nodegroups": ["system", "workers"]}

    def describe_nodegroup(self, *, nodegroupName: str, **_: Any) -> Any:  # noqa: N803 - EKS's name
        labels = {"cdk-training-cluster/node-group": nodegroupName}
        return {"nodegroup": {"labels": labels, "nodeRole": f"arn:aws:iam::1:role/path/{nodegroupName}-role"}}


def test_the_values_of_a_deployed_cluster_are_read() -> None:
    target: Any = SimpleNamespace(client=lambda _: _Answers())
    cluster = read_cluster_file("clusters/base-pod.yaml")
    of_foundation = {
        "FILE_SYSTEM_ID": "fs-1",
        "FILE_SYSTEM_DNS_NAME": "fs-1.fsx",
        "FILE_SYSTEM_MOUNT_NAME": "abc",
        "NODE_SUBNET_ID": "subnet-1",
        "NODE_SECURITY_GROUP_ID": "sg-2",
    }
    assert deployed_values(cluster, target) == of_foundation
    eks = cluster.orchestrator.eks
    assert eks is not None
    eks = eks.model_copy(update={"kubernetes": eks.kubernetes.model_copy(update={"karpenter": True})})
    chosen = cluster.orchestrator.model_copy(update={"eks": eks})
    assert deployed_values(cluster.model_copy(update={"orchestrator": chosen}), target) == of_foundation | {
        "NODE_ROLE_NAME": "workers-role",
        "CLUSTER_SECURITY_GROUP_ID": "sg-1",
    }

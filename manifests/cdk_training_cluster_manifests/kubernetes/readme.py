"""The page that says what a folder is, and in which order it is applied."""

from collections.abc import Mapping, Sequence

from cdk_training_cluster_manifests.kubernetes import drained_nodes
from cdk_training_cluster_manifests.kubernetes.charts import Release
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.governance import quota_command
from cdk_training_cluster_manifests.kubernetes.group_nodes import GroupNodes
from cdk_training_cluster_manifests.kubernetes.jobs import PROGRAM, image_of, program_of
from cdk_training_cluster_manifests.kubernetes.karpenter import launchable
from cdk_training_cluster_manifests.kubernetes.overlay import places

_PAGE = """\
# Kubernetes on {name}

`training-cluster manifests` generated this folder from the cluster file, and does so again after a change of it.
Files that you have changed are not overwritten; `overlay/` is yours.

## Apply

{deployed}1. Let kubectl reach the cluster: {reach}.
2. `helmfile apply` installs the charts of `helmfile.yaml` at fixed versions.{quotas}
3. `kubectl diff -k overlay`, then `kubectl apply --server-side -k overlay`: what charts bring has to be there first.
4. `kubectl create -f {job}` starts a job; `kubectl get workloads --all-namespaces` shows who waits for what.
{start}{training}{argocd}
## Charts

| release | version | what it does |
|---|---|---|
{charts}

EKS add-ons, such as networking, DNS, storage drivers and node monitoring, belong to the cluster's stack.

## Nodes

| node group | nodes | type | a pod of a job asks for |
|---|---|---|---|
{nodes}

Requests leave room for the kubelet, the kernel and daemon sets. Devices are whole: Kubernetes refuses
`nvidia.com/gpu: 0.5`; `gpu_sharing` of a node group splits GPUs.

A drained node has the taint `{drained}`; `kubectl describe node` says why.

## Teams

| team | its own nodes | at most |
|---|---|---|
{teams}
{notes}"""


_CHANGED_PRIORITY = (
    "Jobs have the lowest priority of `priority_classes`: give one a higher one with its label "
    "`kueue.x-k8s.io/priority-class`."
)


def readme(wanted: KubernetesCluster, installed: Sequence[Release], jobs: Sequence[str]) -> str:
    """Return the page.

    Args:
        wanted: The cluster.
        installed: The charts.
        jobs: The paths of the jobs.
    """
    names = places(wanted)
    deployed = (
        "0. Deploy the cluster, then `training-cluster manifests <file> -o . --from-deployed`, or fill in "
        f"`overlay/deployed.env` by hand: {', '.join(names)}.\n"
        if names
        else ""
    )
    reach = (
        f"`aws eks update-kubeconfig --region {wanted.region} --name <the EKS cluster of HyperPod>`"
        if wanted.hyperpod
        else f"run the command of the output `KubeconfigCommand` of the stack `{wanted.name}-cluster`. kubectl and "
        "helmfile reach the Kubernetes API only from the ranges of `private_access_cidrs` or `public_access_cidrs` "
        "under `eks:` of the cluster file"
    )
    argocd = (
        "\nWith Argo CD: commit this folder and `kubectl apply -f argocd/applications.yaml` in place of 2 and 3.\n"
        if wanted.settings.argocd
        else ""
    )
    # The test of NCCL brings its program along.
    job = next((each for each in jobs if "nccl-test" in each), jobs[0] if jobs else "<a job>")
    start = (
        ""
        if wanted.settings.karpenter
        else "\nA job starts no nodes: after a stop, of idle nodes too, it waits for `training-cluster start <file>`."
        "\n"
    )
    training = (
        f"\nA job `fsdp-…` runs your `{program_of(wanted)}`: {_how_it_gets_there(wanted)}, or change the job's "
        "`command`.\n"
        if any("fsdp-" in each for each in jobs)
        else ""
    )
    return _PAGE.format(
        name=wanted.name,
        deployed=deployed,
        reach=reach,
        job=job,
        start=start,
        training=training,
        quotas=_quotas(wanted),
        argocd=argocd,
        drained=drained_nodes.KEY,
        charts="\n".join(f"| {each.name} | {each.chart.version} | {each.chart.purpose} |" for each in installed),
        nodes="\n".join(
            f"| {each.name} | {each.group.count} | {each.info.name} | "
            f"{', '.join(f'`{key}: {value}`' for key, value in _asked(each).items())} |"
            for each in wanted.groups
        ),
        teams="\n".join(
            f"| {team.name} | {_nodes(team.nodes)} | {_nodes(wanted.usable(team))} |" for team in wanted.teams
        ),
        notes="".join(f"\n{note}\n" for note in _notes(wanted)),
    )


def _how_it_gets_there(wanted: KubernetesCluster) -> str:
    if wanted.file_system is not None:
        return "put it there"
    return (
        f"it is `overlay/{PROGRAM}`, an example that trains a small model on random tokens. Replace it with a "
        "program of at most 1 MiB and apply the overlay again, put yours into an `image`"
    )


def _quotas(wanted: KubernetesCluster) -> str:
    """Return the step that lets task governance make what the folder's objects lie in."""
    if wanted.governance is None:
        return ""
    groups = {each.name: each for each in wanted.groups}
    commands = [
        quota_command(wanted.name, wanted.region, team.name, team.nodes, groups, borrow=team.borrow)
        for team in wanted.teams
    ]
    about = (
        "   Kueue is not among them: the EKS add-on `amazon-sagemaker-hyperpod-taskgovernance` brings it, and takes "
        "no other one beside it. It makes a namespace and a queue of each team's quota:"
    )
    return "\n" + "\n".join([about, "", "   ```console", *(f"   {each}" for each in commands), "   ```"]) + "\n"


def _asked(nodes: GroupNodes) -> Mapping[str, str]:
    return nodes.whole_node if nodes.sharing is None else nodes.one_share


def _nodes(nodes: object) -> str:
    return ", ".join(f"{count} of {name}" for name, count in nodes.items()) if isinstance(nodes, dict) else ""


def _notes(wanted: KubernetesCluster) -> Sequence[str]:
    settings = wanted.settings
    notes = [_CHANGED_PRIORITY] if wanted.governance is not None else []
    if settings.karpenter:
        notes.append(
            "Karpenter's controller needs an IAM role for the service account `karpenter` in `kube-system` (a "
            "pod identity association, see https://karpenter.sh/docs/getting-started/). The nodes of a gang are "
            "close together in a placement group only: patch `placementGroupSelector` into its EC2NodeClass. Stops "
            "by idle, schedule and budget act on node groups, and not on nodes that Karpenter launches."
        )
        notes += [
            f"Karpenter launches the nodes of {each.name} into its Capacity Block alone: pods wait until the block "
            "is active. Karpenter drains its nodes 40 minutes before the block ends."
            for each in wanted.groups
            if each.group.capacity.block_id is not None
        ]
        notes += [
            f"Karpenter launches no nodes of {each.name}, which is bought with `{each.group.capacity.call}`: its "
            "node group does, and its jobs wait for `training-cluster start <file>`."
            for each in wanted.groups
            if not launchable(each)
        ]
    if settings.prometheus_url is not None and wanted.hyperpod:
        notes.append(
            "OpenCost finds no price of HyperPod's types (`ml.…`) in EC2's price list: compare the shares of teams "
            "that it shows, and not its dollars."
        )
    if settings.job_queue_url is not None:
        notes.append(
            "KEDA reads the queue as service account `keda-operator` in `keda`: associate a role with "
            "`sqs:GetQueueAttributes`. Nodes at zero are started by Karpenter, or by `training-cluster start`."
        )
    notes += [
        f"Node group {each.name} has no job here: name an `image` for its accelerators and architecture under "
        "`kubernetes:` to get jobs."
        for each in wanted.groups
        if each.accelerators and image_of(wanted, each) is None
    ]
    return notes

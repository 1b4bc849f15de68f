"""The command `diagram`: the architecture of a cluster file, read from the built stacks, as a Mermaid flowchart."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cdk_training_cluster import NodeFleet, TrainingCluster
from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster_cli.pictures.mermaid import Arrow, Box, Group, Shape, flowchart
from cdk_training_cluster_file import ClusterFile, read_cluster_file, warn_of_past_ends
from cdk_training_cluster_stacks.building import built_stacks

# Every function writes its log, its queue and its state, and reads what it decides on.
_PLUMBING = ("dynamodb:", "kms:", "logs:", "sns:GetTopicAttributes", "sqs:")
_READS = re.compile(r"\w+:(Describe|Get|List|BatchGet)")
# The services that own nodes. Systems Manager runs commands on them.
_ON_NODES = ("autoscaling:", "batch:", "ec2:", "eks:", "pcs:", "sagemaker:", "ssm:SendCommand")
_BUCKETS = {"AWS::S3::Bucket": "S3 bucket", "AWS::S3Express::DirectoryBucket": "S3 directory bucket"}
_NODES, _FILES, _TOPIC = "nNodes", "nFiles", "nTopic"

Resources = Mapping[str, Mapping[str, Any]]


def run(file: Path, *, out: Path | None) -> Path | None:
    """Write the architecture of a cluster file.

    Args:
        file: The cluster file.
        out: A `.mmd` or `.md` file, or `-` for standard output. None: a `.mmd` file beside the cluster file.

    Returns:
        The written file. None: standard output.

    Raises:
        ClusterFileError: The file is wrong.
        ValueError: A construct refuses its settings, or the diagram cannot be written.
    """
    target = out or file.with_suffix(".mmd")
    if target.suffix.lower() not in {".mmd", ".md"} and str(target) != "-":
        raise ValueError(f"--out must name a .mmd or .md file, or be -, got {str(target)!r}")
    cluster = read_cluster_file(file)
    warn_of_past_ends(file, cluster, datetime.now(UTC))
    text = architecture(cluster)
    if str(target) == "-":
        sys.stdout.write(text)
        return None
    try:
        target.write_text(fenced(text) if target.suffix.lower() == ".md" else text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{target} cannot be written: {error.strerror}") from error
    return target


def fenced(text: str) -> str:
    """Return a flowchart as a block of Markdown.

    Args:
        text: The flowchart.
    """
    return f"```mermaid\n{text}```\n"


def architecture(cluster: ClusterFile) -> str:
    """Build the stacks of a cluster file, and return their architecture as a Mermaid flowchart.

    Args:
        cluster: The content of the cluster file.

    Raises:
        ValueError: A construct refuses its settings.
        RuntimeError: CDK refuses the templates.
    """
    with built_stacks(cluster) as (app, stack):
        made = stack.training_cluster
        templates = [each.template["Resources"] for each in app.synth().stacks]
        resources: Resources = {name: one for template in templates for name, one in template.items()}
        buckets = [*_buckets(resources)]
        functions = [*_functions(made)]
        arrows = [*_storage_arrows(made, resources), *_scheduler_arrows(made), *_function_arrows(made, resources)]
        known = {_NODES, _FILES, _TOPIC, *(each.id for each in [*buckets, *functions])}
        others = sorted({each.target for each in arrows} - known)
        return flowchart(
            [
                *buckets,
                *_scheduler(made),
                Group(
                    id="nNetwork", title=_network(cluster, resources), inner=[*_file_system(made), _node_groups(made)]
                ),
                Group(id="nFunctions", title="Functions", inner=functions),
                *(Box(id=each, lines=[f"AWS API: {each.removeprefix('nApi')}"]) for each in others),
                _topic(resources),
            ],
            arrows,
        )


def _of(resources: Resources, *kinds: str) -> dict[str, Mapping[str, Any]]:
    return {name: one.get("Properties", {}) for name, one in resources.items() if one["Type"] in kinds}


def _network(cluster: ClusterFile, resources: Resources) -> str:
    for vpc in _of(resources, "AWS::EC2::VPC").values():
        return f"VPC {vpc['CidrBlock']}, nodes in {cluster.availability_zone}"
    existing = cluster.network
    where = "" if existing is None else f" {existing.vpc_id}, nodes in {existing.subnet_id}"
    return f"Existing VPC{where}"


def _node_groups(made: TrainingCluster) -> Group:
    groups = [Box(id=f"nGroup{number}", lines=[*_node_group(each)]) for number, each in enumerate(made.node_groups)]
    return Group(id=_NODES, title=f"Node groups in {made.network.availability_zone}", inner=groups)


def _node_group(fleet: NodeFleet) -> Iterator[str]:
    group = fleet.node_group
    yield f"{group.name}: {group.count} x {' or '.join(each.name for each in fleet.instance_types)}"
    yield f"Capacity: {group.capacity.describe()}"
    yield f"Placement group: {group.chosen_placement.value if fleet.placement_group_name else 'none'}"
    yield f"Network interfaces: {len(fleet.network_interfaces)}, with EFA: {fleet.efa_interfaces}"
    if group.warm_pool is not None:
        yield f"Warm pool: {group.warm_pool.size} stopped nodes"


def _scheduler(made: TrainingCluster) -> Iterator[Box]:
    if made.orchestrator.kind.traits.runs_jobs:
        yield Box(id="nScheduler", lines=[made.orchestrator.kind.value, *made.orchestrator.describe()])


def _scheduler_arrows(made: TrainingCluster) -> Iterator[Arrow]:
    yield from (
        Arrow(source=each.id, target=_NODES, lines=["launches nodes and runs jobs"]) for each in _scheduler(made)
    )


def _topic(resources: Resources) -> Box:
    alarms, emails = (len(_of(resources, kind)) for kind in ("AWS::CloudWatch::Alarm", "AWS::SNS::Subscription"))
    return Box(id=_TOPIC, lines=["Alert topic", f"{alarms} alarms notify it", f"E-mail addresses: {emails}"])


def _file_system(made: TrainingCluster) -> Iterator[Box]:
    files = made.file_system
    if files is not None:
        size = "existing" if files.settings is None else files.settings.describe()
        yield Box(id=_FILES, lines=["FSx for Lustre", size], shape=Shape.STORE)


def _buckets(resources: Resources) -> Iterator[Box]:
    for name in sorted(_of(resources, *_BUCKETS)):
        kept = resources[name].get("DeletionPolicy", "Delete").startswith("Retain")
        lines = [f"{_BUCKETS[resources[name]['Type']]}: {_short(name)}", *["retained"] * kept]
        yield Box(id=f"n{name}", lines=lines, shape=Shape.STORE)
    for name, link in _links(resources).items():
        if _bucket_of(name, link, resources) == f"n{name}":
            yield Box(id=f"n{name}", lines=[str(link["DataRepositoryPath"])], shape=Shape.STORE)


def _storage_arrows(made: TrainingCluster, resources: Resources) -> Iterator[Arrow]:
    if made.file_system is not None:
        yield Arrow(source=_FILES, target=_NODES, lines=[f"mounted at {made.file_system.mount_point}"])
    for name, link in _links(resources).items():
        path, policies = link["FileSystemPath"], link.get("S3", {})
        bucket = _bucket_of(name, link, resources)
        imports, exports = (policies.get(f"Auto{way}Policy", {}).get("Events", []) for way in ("Import", "Export"))
        if imports or not exports:
            yield Arrow(source=bucket, target=_FILES, lines=[f"{path}: imports {_events(imports)}"])
        if exports:
            yield Arrow(source=_FILES, target=bucket, lines=[f"{path}: exports {_events(exports)}"])


def _events(events: Sequence[str]) -> str:
    return f"{', '.join(map(str.lower, events))} files" if events else "files on demand"


def _links(resources: Resources) -> dict[str, Mapping[str, Any]]:
    return _of(resources, "AWS::FSx::DataRepositoryAssociation")


def _bucket_of(name: str, link: Mapping[str, Any], resources: Resources) -> str:
    """Return the id of the bucket that a file system is linked with: one of the stacks, or the link's own."""
    buckets = _of(resources, *_BUCKETS)
    return f"n{next((each for each in _references(link['DataRepositoryPath']) if each in buckets), name)}"


def _functions(made: TrainingCluster) -> Iterator[Box]:
    for each in made.guardrails:
        minutes = each.spec.every.total_seconds() / 60
        runs = "every minute" if minutes == 1 else f"every {minutes:g} minutes"
        title = each.spec.called.removeprefix("the ").capitalize()
        yield Box(id=_id(each), lines=[f"{title}, {runs}", *each.describe()], shape=Shape.FUNCTION)


def _id(guardrail: Guardrail) -> str:
    return f"n{type(guardrail).__name__}"


def _function_arrows(made: TrainingCluster, resources: Resources) -> Iterator[Arrow]:
    """Yield an arrow for each function and each part that its role may change; the labels are the role's actions."""
    packages = {each.spec.package: _id(each) for each in made.guardrails}
    for each in made.guardrails:
        found: dict[str, set[str]] = {}
        for action, resource in _changes(each, resources):
            for target in _targets(action, resource, packages, resources):
                found.setdefault(target, set()).add(_words(action))
        found.pop(_id(each), None)
        if set(found) == {_TOPIC}:
            yield Arrow(source=_id(each), target=_TOPIC, lines=["reports only"])
            continue
        for target, actions in sorted(found.items()):
            yield Arrow(source=_id(each), target=target, lines=[f"may {each}" for each in sorted(actions)])


def _changes(guardrail: Guardrail, resources: Resources) -> Iterator[tuple[str, object]]:
    """Yield each action that a function's role allows and that changes something, with its resource."""
    roles = {
        str(one["Role"]["Fn::GetAtt"][0])
        for one in _of(resources, "AWS::Lambda::Function").values()
        if str(one["Handler"]).startswith(f"{guardrail.spec.package}.")
    }
    for policy in _of(resources, "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy").values():
        if any(role.get("Ref") in roles for role in policy.get("Roles", ())):
            for statement in policy["PolicyDocument"]["Statement"]:
                for action in _list(statement["Action"]):
                    if (
                        statement["Effect"] == "Allow"
                        and not _READS.match(action)
                        and not action.startswith(_PLUMBING)
                    ):
                        yield action, statement["Resource"]


def _targets(action: str, resource: object, packages: Mapping[str, str], resources: Resources) -> Iterator[str]:
    """Yield the ids of the parts that an action changes; an action on no part of the diagram has its service's id."""
    named = [each for each in _references(resource) if each in resources]
    if action.startswith(_ON_NODES):
        yield _NODES
    elif action == "sns:Publish":
        yield _TOPIC
    elif action.startswith("fsx:"):
        yield _FILES
    elif action.startswith("lambda:") and named:
        yield from (packages[package] for each in named if (package := _package(each, resources)) in packages)
    elif buckets := [f"n{each}" for each in named if resources[each]["Type"] in _BUCKETS]:
        yield from buckets
    else:
        yield f"nApi{re.sub('[^a-z0-9]', '', action.partition(':')[0])}"


def _package(name: str, resources: Resources) -> str:
    """Return the package of a function, or of the function of an alias."""
    one = resources[name].get("Properties", {})
    if resources[name]["Type"] == "AWS::Lambda::Function":
        return str(one["Handler"]).partition(".")[0]
    return next((_package(each, resources) for each in _references(one.get("FunctionName")) if each in resources), "")


def _references(value: object) -> Iterator[str]:
    """Yield the logical ids in a value of a template."""
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict):
        for function, argument in value.items():
            if function == "Ref":
                yield str(argument)
            elif function == "Fn::GetAtt":
                yield str(argument[0])
            else:
                yield from _references(argument)


def _words(action: str) -> str:
    """Return an action of IAM in words, such as `stop instances`."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", action.partition(":")[2])).lower()


def _list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _short(logical_id: str) -> str:
    """Return a logical id as words, without its hash."""
    name = re.sub(r"[0-9A-F]{8}$", "", logical_id)
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name.removesuffix("Bucket"))).lower()

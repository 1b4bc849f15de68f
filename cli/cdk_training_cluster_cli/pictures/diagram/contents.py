"""What a diagram says: read from the synthesized templates, and where these hold only ids, from the constructs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import aws_cloudwatch as cloudwatch

from cdk_training_cluster import InstanceTypeInfo, NodeFleet, TrainingCluster
from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster.guardrails import BillingAlarms, ClusterSpend, WeeklyCostReport
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster_cli.pictures.diagram.boxes import Box, Color
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.building import built_stacks

_MONEY = (BillingAlarms, ClusterSpend, WeeklyCostReport)
# Every function writes its log, its queue and its state, and reads what it decides on.
_PLUMBING = ("dynamodb:", "kms:", "logs:", "sns:GetTopicAttributes", "sqs:")
_READS = re.compile(r"\w+:(Describe|Get|List|BatchGet)")

Resources = Mapping[str, Mapping[str, Any]]


def contents(cluster: ClusterFile) -> list[Box]:
    """Synthesize the stacks of a cluster file, and return what a diagram of them shows.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings.
        RuntimeError: CDK refuses the templates.
    """
    with built_stacks(cluster) as (app, stack):
        made = stack.training_cluster
        templates = [each.template["Resources"] for each in app.synth().stacks]
        resources: Resources = {name: one for template in templates for name, one in template.items()}
        return [
            Box(
                title="Network and nodes",
                inner=[_network(cluster, made, resources)],
                columns=1,
                color=Color.NETWORK,
            ),
            *_jobs(made),
            Box(title="Storage in S3 and state", inner=[*_stores(resources)], columns=4, color=Color.STORAGE),
            Box(
                title="Guardrails",
                inner=[_guardrail(each, resources) for each in made.guardrails if not isinstance(each, _MONEY)],
                color=Color.GUARDRAILS,
            ),
            Box(title="Money", inner=[*_money(made, resources)], color=Color.MONEY),
        ]


def _of(resources: Resources, kind: str) -> dict[str, Mapping[str, Any]]:
    return {name: one.get("Properties", {}) for name, one in resources.items() if one["Type"] == kind}


def _network(cluster: ClusterFile, made: TrainingCluster, resources: Resources) -> Box:
    subnets = _of(resources, "AWS::EC2::Subnet")
    kind = made.orchestrator.kind
    groups = [_node_group(fleet, kind) for fleet in made.node_groups]
    nodes = Box(title="Node groups", inner=groups, columns=4, color=Color.NETWORK)
    if not subnets:
        existing = cluster.network
        where = "" if existing is None else f" {existing.vpc_id}"
        subnet = "" if existing is None else f" {existing.subnet_id}"
        return Box(
            title=f"Existing VPC{where}",
            inner=[
                Box(title=f"Subnet{subnet} in {made.network.availability_zone}", inner=[nodes], columns=1),
                *_inside(made, resources),
            ],
            columns=1,
        )
    (vpc,) = _of(resources, "AWS::EC2::VPC").values()
    return Box(
        title=f"VPC {vpc['CidrBlock']}",
        lines=["Flow log to CloudWatch Logs"] * bool(_of(resources, "AWS::EC2::FlowLog")),
        inner=[_subnet(name, subnets[name], [nodes, *_inside(made, resources)], resources) for name in subnets],
        columns=1,
    )


def _subnet(name: str, subnet: Mapping[str, Any], nodes: Sequence[Box], resources: Resources) -> Box:
    where = f"{subnet['CidrBlock']} in {subnet['AvailabilityZone']}"
    ways = {way for route in _routes(name, resources) for way in ("GatewayId", "NatGatewayId") if way in route}
    if "NatGatewayId" in ways:
        endpoints = [
            f"{each.get('VpcEndpointType', 'Gateway')} endpoint for {_text(each['ServiceName']).rpartition('.')[2]}"
            for each in _of(resources, "AWS::EC2::VPCEndpoint").values()
        ]
        return Box(
            title=f"Node subnet {where}", lines=["Way out: the NAT gateway", *endpoints], inner=nodes, columns=1
        )
    if "GatewayId" in ways:
        gateways = ["NAT gateway with an Elastic IP address"] * len(_of(resources, "AWS::EC2::NatGateway"))
        return Box(title=f"Public subnet {where}", lines=[" · ".join(["Internet gateway", *gateways])])
    # EKS wants a subnet in a second zone; no other engine adds one.
    return Box(title=f"Subnet of the control plane {where}", lines=["No way out"])


def _routes(subnet: str, resources: Resources) -> Iterator[Mapping[str, Any]]:
    tables = [
        each["RouteTableId"]
        for each in _of(resources, "AWS::EC2::SubnetRouteTableAssociation").values()
        if each["SubnetId"] == {"Ref": subnet}
    ]
    yield from (each for each in _of(resources, "AWS::EC2::Route").values() if each["RouteTableId"] in tables)


def _inside(made: TrainingCluster, resources: Resources) -> Iterator[Box]:
    yield Box(title="Security groups", inner=[*_security_groups(resources)], columns=2)
    yield from _file_system(made, resources)


def _jobs(made: TrainingCluster) -> Iterator[Box]:
    orchestrator = made.orchestrator
    if orchestrator.kind is not OrchestratorKind.NONE:
        lines = [
            *orchestrator.describe(),
            *(f"output {each.name}" for each in orchestrator.outputs(made.cluster_name)),
        ]
        engine = Box(title=orchestrator.kind.value, lines=lines, color=Color.NODES)
        yield Box(title="Jobs", inner=[engine], columns=1, color=Color.NODES)


def _node_group(fleet: NodeFleet, kind: OrchestratorKind) -> Box:
    group, info = fleet.node_group, fleet.instance_type
    interfaces = len(fleet.network_interfaces)
    types = " or ".join(each.name for each in fleet.instance_types)
    placement = group.chosen_placement.value if fleet.placement_group_name else "none"
    pool = [] if group.warm_pool is None else [f"Warm pool of {group.warm_pool.size} stopped nodes"]
    owner = "Spot Fleet" if fleet.spot_fleet_id else "Auto Scaling group"
    if kind is not OrchestratorKind.NONE:
        owner = kind.value
    return Box(
        title=f"{group.name}: {group.count} x {types}",
        lines=[
            _accelerators(info),
            f"{interfaces} network interfaces a node, {fleet.efa_interfaces} of them EFA",
            f"Bought: {group.capacity.describe()}",
            f"Placement group: {placement}",
            f"Run by: {owner}",
            *pool,
        ],
        color=Color.NODES,
    )


def _accelerators(info: InstanceTypeInfo) -> str:
    each = [f"{one.count} x {one.name}, {one.memory_mib / 1024:.0f} GiB" for one in info.accelerators]
    return "; ".join(each) or "No accelerator"


def _security_groups(resources: Resources) -> Iterator[Box]:
    for name, group in sorted(_of(resources, "AWS::EC2::SecurityGroup").items()):
        rules = [_rule(each, "in") for each in group.get("SecurityGroupIngress", ())]
        rules += [_rule(each, "out") for each in group.get("SecurityGroupEgress", ())]
        for way, kind in (("in", "AWS::EC2::SecurityGroupIngress"), ("out", "AWS::EC2::SecurityGroupEgress")):
            rules += [
                _rule(each, way)
                for each in _of(resources, kind).values()
                if each["GroupId"] == {"Fn::GetAtt": [name, "GroupId"]}
            ]
        yield Box(title=str(group["GroupDescription"]), lines=sorted(set(rules)), color=Color.NETWORK)


def _rule(rule: Mapping[str, Any], way: str) -> str:
    first, last = rule.get("FromPort"), rule.get("ToPort")
    ports = (
        "all" if first is None else f"{rule['IpProtocol'].upper()} {first}" + (f"-{last}" if last != first else "")
    )
    where = rule.get("CidrIp", "")
    return f"{way}: {ports}: {rule.get('Description', 'no description')}{f' ({where})' if where else ''}"


def _file_system(made: TrainingCluster, resources: Resources) -> Iterator[Box]:
    files = made.file_system
    if files is None:
        return
    system = next(iter(_of(resources, "AWS::FSx::FileSystem").values()), None)
    what = "existing" if files.settings is None else files.settings.describe()
    links = [
        Box(
            title=f"{files.mount_point}{link['FileSystemPath']}",
            lines=[f"linked with {_text(link['DataRepositoryPath'])}", *_policies(link.get("S3", {}))],
            color=Color.STORAGE,
        )
        for link in _of(resources, "AWS::FSx::DataRepositoryAssociation").values()
    ]
    yield Box(
        title=f"FSx for Lustre, mounted at {files.mount_point}",
        lines=[what, *(["kept when its stack is deleted"] if system is not None else [])],
        inner=links,
        columns=4,
        color=Color.STORAGE,
    )


def _policies(link: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (("AutoImportPolicy", "imports"), ("AutoExportPolicy", "exports")):
        if key in link:
            yield f"{what} what is {', '.join(map(str.lower, link[key]['Events']))}"


def _stores(resources: Resources) -> Iterator[Box]:
    for kind, what in (("AWS::S3::Bucket", "S3 bucket"), ("AWS::S3Express::DirectoryBucket", "S3 directory bucket")):
        for name in sorted(_of(resources, kind)):
            kept = resources[name].get("DeletionPolicy", "Delete").startswith("Retain")
            yield Box(title=f"{what}: {_short(name)}", lines=["kept when its stack is deleted"] * kept)
    for name in sorted(_of(resources, "AWS::DynamoDB::Table")):
        yield Box(title=f"DynamoDB table: {_short(name)}", lines=["what the functions remember"])


def _guardrail(guardrail: Guardrail, resources: Resources) -> Box:
    spec = guardrail.spec
    functions = {
        str(one["Role"]["Fn::GetAtt"][0]): one
        for one in _of(resources, "AWS::Lambda::Function").values()
        if str(one["Handler"]).startswith(f"{spec.package}.")
    }
    actions = sorted(
        action
        for policy in _of(resources, "AWS::IAM::Policy").values()
        if any(role.get("Ref") in functions for role in policy["Roles"])
        for statement in policy["PolicyDocument"]["Statement"]
        for action in _list(statement["Action"])
    )
    acts = [each for each in actions if not _READS.match(each) and not each.startswith(_PLUMBING)]
    alarms = sum(isinstance(each, cloudwatch.CfnAlarm) for each in guardrail.node.find_all())
    minutes = spec.every.total_seconds() / 60
    return Box(
        title=spec.called.removeprefix("the ").capitalize(),
        lines=[
            "Runs every minute" if minutes == 1 else f"Runs every {minutes:g} minutes",
            *guardrail.describe(),
            f"May: {', '.join(_grouped(acts))}" if acts else "Only reads",
            f"Watched by {alarms} alarms",
        ],
    )


def _grouped(actions: Sequence[str]) -> Iterator[str]:
    """Yield each service with its actions, such as `sns: Publish`."""
    services = sorted({each.partition(":")[0] for each in actions})
    for service in services:
        names = sorted({each.partition(":")[2] for each in actions if each.startswith(f"{service}:")})
        yield f"{service} {' '.join(names)}"


def _money(made: TrainingCluster, resources: Resources) -> Iterator[Box]:
    yield from (_guardrail(each, resources) for each in made.guardrails if isinstance(each, _MONEY))
    if made.cost_budget is None:
        yield Box(
            title="No budget of AWS Budgets", lines=["The cluster file names no budget."] * (made.spend is None)
        )
    else:
        yield Box(title="AWS budget", lines=[*made.cost_budget.describe()])
    alarms = _of(resources, "AWS::CloudWatch::Alarm")
    dashboards = _of(resources, "AWS::CloudWatch::Dashboard")
    yield Box(
        title="Alarms",
        lines=[
            f"{len(alarms)} alarms notify the topic for alerts",
            f"E-mail addresses that get them: {len(_of(resources, 'AWS::SNS::Subscription'))}",
            *["A dashboard shows all of them"] * bool(dashboards),
        ],
    )


def _list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _text(value: Any) -> str:  # noqa: ANN401 - a value of a template
    """Return a value of a template as a reader takes it; what is known at deployment only is named."""
    if not isinstance(value, dict):
        return str(value)
    ((function, argument),) = value.items()
    if function == "Fn::Join":
        return "".join(map(_text, argument[1]))
    return f"({_short(argument if isinstance(argument, str) else str(argument[0]))})"


def _short(logical_id: str) -> str:
    """Return a logical id as words, without its hash."""
    name = re.sub(r"[0-9A-F]{8}$", "", logical_id.partition(":")[2] or logical_id)
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name.removesuffix("Bucket"))).lower()

"""The file system: what FSx takes, who may reach it, and that it is never deleted by default."""

from collections.abc import Callable

import pytest
from aws_cdk import CfnParameter, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterNetwork, Dataset, NodeGroup, TrainingCluster, TrainingFileSystem
from synthesis import ZONE, new_stack, only, resources, warnings


def _file_system(stack: Stack, **settings: object) -> TrainingFileSystem:
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    return TrainingFileSystem(stack, "FileSystem", network=network, **settings)  # type: ignore[arg-type]  # the tests' settings vary


@pytest.fixture(scope="module")
def plain() -> TrainingFileSystem:
    """Return a file system of which nothing is set."""
    return _file_system(new_stack())


@pytest.fixture(scope="module")
def stack(plain: TrainingFileSystem) -> Stack:
    """Return its stack."""
    return Stack.of(plain)


def test_it_is_persistent_compressed_and_linkable(stack: Stack) -> None:
    assert only(stack, "AWS::FSx::FileSystem")["Properties"] | {
        "SubnetIds": None,
        "SecurityGroupIds": None,
    } == {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageType": "SSD",
        "StorageCapacity": 1200,
        "SubnetIds": None,
        "SecurityGroupIds": None,
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
            "DataCompressionType": "LZ4",
            "AutomaticBackupRetentionDays": 0,
            "LogConfiguration": {"Level": "DISABLED"},
        },
    }


def test_it_lies_in_the_nodes_subnet(plain: TrainingFileSystem, stack: Stack) -> None:
    subnet = stack.resolve(plain.network.node_subnet.subnet_id)
    assert only(stack, "AWS::FSx::FileSystem")["Properties"]["SubnetIds"] == [subnet]


@pytest.mark.parametrize(
    "kind", ["AWS::FSx::FileSystem", "AWS::EC2::SecurityGroup", "AWS::EC2::VPC", "AWS::EC2::Subnet"]
)
def test_it_and_what_it_lives_in_stay_on_delete_and_on_replace(stack: Stack, kind: str) -> None:
    found = resources(stack, kind)
    assert found
    for resource in found.values():
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_nodes_and_servers_reach_each_other_on_lustre_s_ports_and_nothing_else_does(
    plain: TrainingFileSystem, stack: Stack
) -> None:
    own = stack.resolve(plain.connections.security_groups[0].security_group_id)
    nodes = stack.resolve(plain.network.security_group.security_group_id)
    ports = [(988, 988), (1018, 1023)]
    group = resources(stack, "AWS::EC2::SecurityGroup")[own["Fn::GetAtt"][0]]["Properties"]
    assert [
        (rule["SourceSecurityGroupId"], rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupIngress"]
    ] == [(nodes, *port) for port in ports]
    assert [
        (rule["DestinationSecurityGroupId"], rule["FromPort"], rule["ToPort"])
        for rule in group["SecurityGroupEgress"]
    ] == [(nodes, *port) for port in ports]
    coming, leaving = (
        {
            (str(rule["GroupId"]), str(rule[f"{other}SecurityGroupId"]), rule["FromPort"])
            for rule in (each["Properties"] for each in resources(stack, kind).values())
            if "FromPort" in rule
        }
        for kind, other in (
            ("AWS::EC2::SecurityGroupIngress", "Source"),
            ("AWS::EC2::SecurityGroupEgress", "Destination"),
        )
    )
    within = {(str(own), str(own), first) for first, _ in ports}
    assert (coming, leaving) == (within | {(str(nodes), str(own), first) for first, _ in ports}, within)


def test_the_description_of_its_group_stays_as_released_since_a_new_one_replaces_the_file_system(
    plain: TrainingFileSystem, stack: Stack
) -> None:
    own = stack.resolve(plain.connections.security_groups[0].security_group_id)["Fn::GetAtt"][0]
    group = resources(stack, "AWS::EC2::SecurityGroup")[own]["Properties"]
    assert group["GroupDescription"] == "FSx for Lustre: the file system and its clients"


def test_a_dataset_is_linked_with_its_names_and_follows_the_bucket() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    _file_system(stack, datasets=[Dataset(bucket=corpus, prefix="tokens/", file_system_path="/data")])
    (file_system,) = resources(stack, "AWS::FSx::FileSystem")
    assert only(stack, "AWS::FSx::DataRepositoryAssociation")["Properties"] == {
        "FileSystemId": {"Ref": file_system},
        "FileSystemPath": "/data",
        "DataRepositoryPath": "s3://corpus/tokens/",
        "BatchImportMetaDataOnCreate": True,
        "S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}},
    }


def test_the_file_system_is_made_after_the_rules_that_fsx_looks_for(stack: Stack) -> None:
    rules = {
        name
        for kind in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        for name, rule in resources(stack, kind).items()
        if "FromPort" in rule["Properties"]
    }
    assert len(rules) == 6
    (fixed,) = resources(stack, "AWS::SSM::Parameter")
    assert {*rules, fixed} == set(only(stack, "AWS::FSx::FileSystem")["DependsOn"])


def test_links_are_made_one_after_the_other() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    _file_system(
        stack, datasets=[Dataset(bucket=corpus, prefix=f"{name}/", file_system_path=f"/{name}") for name in "abc"]
    )
    links = resources(stack, "AWS::FSx::DataRepositoryAssociation")
    ids = {link["Properties"]["FileSystemPath"]: name for name, link in links.items()}
    after = {path: links[ids[path]].get("DependsOn", []) for path in ids}
    assert after == {"/a": [], "/b": [ids["/a"]], "/c": [ids["/b"]]}


def test_links_keep_their_ids_when_another_is_taken_away() -> None:
    def ids(*paths: str) -> set[str]:
        stack = new_stack()
        corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
        _file_system(
            stack,
            datasets=[Dataset(bucket=corpus, prefix=f"{path.strip('/')}/", file_system_path=path) for path in paths],
        )
        return set(resources(stack, "AWS::FSx::DataRepositoryAssociation"))

    assert ids("/b", "/c-d") < ids("/a", "/b", "/c-d", "/c.d")


def test_a_link_is_made_after_the_bucket_s_policy() -> None:
    stack = new_stack()
    corpus = s3.Bucket(stack, "Corpus", enforce_ssl=True)
    _file_system(stack, datasets=[Dataset(bucket=corpus, file_system_path="/")])
    (policy,) = resources(stack, "AWS::S3::BucketPolicy")
    assert policy in only(stack, "AWS::FSx::DataRepositoryAssociation")["DependsOn"]


def test_an_overlap_is_refused_whenever_it_is_added() -> None:
    stack = new_stack()
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    file_system = _file_system(stack, datasets=[Dataset(bucket=corpus, file_system_path="/data")])
    with pytest.raises(ValueError, match=r"^the datasets at /data and /data/raw overlap"):
        file_system.add_dataset(Dataset(bucket=corpus, file_system_path="/data/raw"))
    assert len(file_system.datasets) == 1
    Template.from_stack(stack).resource_count_is("AWS::FSx::DataRepositoryAssociation", 1)


def test_several_mistakes_are_told_at_once() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _file_system(new_stack(), storage_capacity_gib=100, throughput_mbps_per_tib=200, mount_point="fsx")
    assert str(refused.value).splitlines() == [
        "storage_capacity_gib must be 1200 or a multiple of 2400 for PERSISTENT_2, got 100",
        "throughput_mbps_per_tib must be 125, 250, 500 or 1000 for PERSISTENT_2, got 200",
        "mount_point must be an absolute path below / of letters, digits, '.', '_' and '-', such as '/fsx', got "
        "'fsx'",
    ]


def test_numbers_that_are_not_known_yet_are_not_checked() -> None:
    stack = new_stack()
    number = CfnParameter(stack, "Number", type="Number").value_as_number
    _file_system(stack, storage_capacity_gib=number, throughput_mbps_per_tib=number)


def test_with_efa_all_traffic_passes_between_servers_and_nodes_by_their_groups() -> None:
    stack = new_stack()
    files = _file_system(stack, efa_enabled=True)
    own = stack.resolve(files.connections.security_groups[0].security_group_id)
    nodes = stack.resolve(files.network.security_group.security_group_id)
    found = {
        (kind, str(rule["GroupId"]), str(rule[f"{other}SecurityGroupId"]))
        for kind, other in (("Ingress", "Source"), ("Egress", "Destination"))
        for rule in (each["Properties"] for each in resources(stack, f"AWS::EC2::SecurityGroup{kind}").values())
        if rule["IpProtocol"] == "-1"
    }
    inline = resources(stack, "AWS::EC2::SecurityGroup")[own["Fn::GetAtt"][0]]["Properties"]
    assert found >= {
        *((kind, str(group), str(own)) for kind in ("Ingress", "Egress") for group in (own, nodes)),
    }
    assert [rule["IpProtocol"] for rule in inline["SecurityGroupIngress"] + inline["SecurityGroupEgress"]] == [
        "-1"
    ] * 2
    assert inline["SecurityGroupIngress"][0]["SourceSecurityGroupId"] == nodes
    assert only(stack, "AWS::FSx::FileSystem")["Properties"]["StorageCapacity"] == 19200


@pytest.mark.parametrize(("count", "warned"), [(128, []), (129, ["the nodes make 1,032 EFA connections"])])
def test_more_efa_connections_than_a_file_system_takes_are_warned_of(count: int, warned: list[str]) -> None:
    stack = new_stack()
    files = _file_system(stack, efa_enabled=True)
    groups = [NodeGroup("workers", instance_types=["p5.48xlarge"], count=count)]
    TrainingCluster(stack, "Pod", network=files.network, file_system=files, node_groups=groups)
    said = [text for text in warnings(stack) if "[ack: cdk-training-cluster:fileSystemEfaConnections]" in text]
    assert [text.partition(" to the file")[0] for text in said] == warned


def test_an_existing_one_is_mounted_linked_and_let_in_as_one_that_is_made() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    files = TrainingFileSystem.from_attributes(
        stack,
        "Kept",
        network=network,
        file_system_id="fs-0a1b2c3d4e5f67890",
        mount_name="abcdefgh",
        security_group=ec2.SecurityGroup.from_security_group_id(stack, "Own", "sg-0a1b2c3d4e5f67890"),
        datasets=[Dataset(bucket=corpus, file_system_path="/data")],
    )
    cluster = TrainingCluster(
        stack,
        "Pod",
        network=network,
        file_system=files,
        node_groups=[NodeGroup("workers", instance_types=["p5.48xlarge"], count=1)],
    )
    assert cluster.file_system is files
    assert not resources(stack, "AWS::FSx::FileSystem")
    assert only(stack, "AWS::FSx::DataRepositoryAssociation")["Properties"]["FileSystemId"] == files.file_system_id
    let_in = [rule["Properties"] for rule in resources(stack, "AWS::EC2::SecurityGroupIngress").values()]
    assert [rule["FromPort"] for rule in let_in if rule["GroupId"] == "sg-0a1b2c3d4e5f67890"] == [988, 1018]
    assert stack.resolve(files.dns_name)["Fn::Join"][1][0] == "fs-0a1b2c3d4e5f67890.fsx"
    # Its names are literals: without this, rules could go while nodes still write.
    group = only(stack, "AWS::AutoScaling::AutoScalingGroup")
    assert {name for name in resources(stack, "AWS::EC2::SecurityGroupIngress") if "Kept" in name} <= set(
        group["DependsOn"]
    )


def test_lustre_s_ports_are_those_of_its_connections(plain: TrainingFileSystem) -> None:
    port = plain.connections.default_port
    assert port is not None
    assert port.to_rule_json() == {"ipProtocol": "tcp", "fromPort": 988, "toPort": 1023}


@pytest.mark.parametrize(
    ("metric", "name", "dimensions"),
    [
        (lambda files: files.metric_data_read_bytes(), "DataReadBytes", set()),
        (lambda files: files.metric_data_write_bytes(), "DataWriteBytes", set()),
        (lambda files: files.metric_data_read_operations(), "DataReadOperations", set()),
        (lambda files: files.metric_data_write_operations(), "DataWriteOperations", set()),
        (lambda files: files.metric_metadata_operations(), "MetadataOperations", set()),
        (lambda files: files.metric_free_data_storage_capacity(), "FreeDataStorageCapacity", set()),
        (
            lambda files: files.metric_age_of_oldest_queued_message("AutoExport"),
            "AgeOfOldestQueuedMessage",
            {("Publisher", "AutoExport")},
        ),
        (lambda files: files.metric("ClientConnections"), "ClientConnections", set()),
    ],
)
def test_metrics_have_aws_s_names(
    plain: TrainingFileSystem,
    metric: Callable[[TrainingFileSystem], cloudwatch.Metric],
    name: str,
    dimensions: set[tuple[str, str]],
) -> None:
    made = metric(plain)
    assert (made.namespace, made.metric_name) == ("AWS/FSx", name)
    assert set((made.dimensions or {}).items()) == {("FileSystemId", plain.file_system_id), *dimensions}


def test_free_space_is_added_up_over_targets_and_not_over_minutes(plain: TrainingFileSystem) -> None:
    free = plain.metric_free_data_storage_capacity()
    assert (free.statistic, free.period.to_minutes()) == ("Sum", 1)

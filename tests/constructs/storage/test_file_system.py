"""The file system: what FSx takes, who may reach it, and that it is never deleted by default."""

import pytest
from aws_cdk import CfnParameter, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template

from cdk_training_cluster import ClusterNetwork, Dataset, TrainingFileSystem
from synthesis import ZONE, new_stack, only, resources


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
    assert rules == set(only(stack, "AWS::FSx::FileSystem")["DependsOn"])


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


@pytest.mark.parametrize("capacity", [1200, 2400, 4800, 100800])
def test_a_capacity_that_fsx_takes(capacity: int) -> None:
    stack = new_stack()
    _file_system(stack, storage_capacity_gib=capacity)
    assert only(stack, "AWS::FSx::FileSystem")["Properties"]["StorageCapacity"] == capacity


@pytest.mark.parametrize("capacity", [0, -2400, 1199, 1201, 3600])
def test_a_capacity_that_is_no_multiple_of_2400_gib_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        _file_system(new_stack(), storage_capacity_gib=capacity)
    assert str(refused.value) == (
        f"storage_capacity_gib must be 1200 or a multiple of 2400 for PERSISTENT_2, got {capacity}"
    )


@pytest.mark.parametrize("throughput", [125, 250, 500, 1000])
def test_a_throughput_that_fsx_takes(throughput: int) -> None:
    _file_system(new_stack(), throughput_mbps_per_tib=throughput)


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

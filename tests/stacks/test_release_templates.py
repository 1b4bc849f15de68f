"""What people have deployed with a release: nothing that holds data, nor what it hangs on, may be replaced now."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripts.keep_templates import keep_templates

from examples import swept, templates
from release_templates import DATA, Resource, data_in, kept_clusters, replacements, upstream

_CLUSTERS = kept_clusters()
_P4DE = next(path for path in _CLUSTERS if path.name == "p4de")

_FOUNDATION, _CLUSTER = "p4de-foundation", "p4de-cluster"

Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("kept", [swept(cluster) for cluster in _CLUSTERS])
def test_a_deployed_cluster_keeps_what_holds_its_data(kept: Path, assembly_of: Callable[[Path], Path]) -> None:
    assert replacements(templates(kept), templates(assembly_of(kept / "cluster.yaml"))) == []


def test_every_kind_of_data_is_among_the_kept_templates() -> None:
    kept = templates(_P4DE)
    assert {kept[data.stack]["Resources"][data.logical_id]["Type"] for data in data_in(kept)} == set(DATA)


def test_what_is_in_another_stack_is_followed_through_its_export() -> None:
    kept = templates(_P4DE)
    found = upstream(kept, Resource(_CLUSTER, _only(kept[_CLUSTER], "AWS::AutoScaling::AutoScalingGroup")))
    assert Resource(_FOUNDATION, _only(kept[_FOUNDATION], "AWS::EC2::VPC")) in found


def _only(template: dict[str, Any], kind: str, words: str = "") -> str:
    (found,) = (
        name
        for name, definition in template["Resources"].items()
        if definition["Type"] == kind and words in str(definition)
    )
    return str(found)


def _set(kind: str, name: str, value: Any, *, words: str = "") -> Change:
    """Change a property of the one resource of a type that has the words in it; None takes it away."""

    def change(stacks: dict[str, Any]) -> None:
        (template,) = (
            each for each in stacks.values() if any(_is(r, kind, words) for r in each["Resources"].values())
        )
        properties = template["Resources"][_only(template, kind, words)].setdefault("Properties", {})
        *above, last = name.split(".")
        for part in above:
            properties = properties[part]
        if value is None:
            del properties[last]
        else:
            properties[last] = value

    return change


def _is(definition: dict[str, Any], kind: str, words: str) -> bool:
    return definition["Type"] == kind and words in str(definition)


def _rename(kind: str) -> Change:
    def change(stacks: dict[str, Any]) -> None:
        for template in stacks.values():
            for name in [name for name, each in template["Resources"].items() if each["Type"] == kind]:
                template["Resources"][f"Other{name}"] = template["Resources"].pop(name)

    return change


def _retype(kind: str, other: str, *, words: str = "") -> Change:
    def change(stacks: dict[str, Any]) -> None:
        template = stacks[_FOUNDATION]
        template["Resources"][_only(template, kind, words)]["Type"] = other

    return change


_GROUP, _SUBNET = "AWS::EC2::SecurityGroup", "AWS::EC2::Subnet"
_FILES, _BUCKET, _PLACEMENT = DATA

_FATAL: list[tuple[str, Change, str]] = [
    (
        "the nodes' group, which the file system's rules name, is described in other words",
        _set(_GROUP, "GroupDescription", "EFA", words="EFA: all"),
        'create-only GroupDescription was "EFA: all traffic between the members, and out" and is "EFA"',
    ),
    (
        "the network has another range",
        _set("AWS::EC2::VPC", "CidrBlock", "10.1.0.0/16"),
        'create-only CidrBlock was "10.0.0.0/16" and is "10.1.0.0/16"',
    ),
    (
        "the file system is in another group",
        _set(_FILES, "SecurityGroupIds", ["sg-0a1b2c3d"]),
        'GroupId"]}] and is ["sg-0a1b2c3d"]; on it hangs FileSystem',
    ),
    (
        "a function decides on the file system's deployment type",
        _set(_FILES, "LustreConfiguration", {"Fn::If": ["Durable", {}, {}]}),
        'create-only LustreConfiguration.DeploymentType was "PERSISTENT_2" and is {"Fn::If": ["Durable", {}, {}]}',
    ),
    (
        "the file system's Lustre is as old as FSx's default",
        _set(_FILES, "FileSystemTypeVersion", None),
        'create-only FileSystemTypeVersion was "2.15" and is absent',
    ),
    (
        "the placement group gets a tag",
        _set(_PLACEMENT, "Tags", [{"Key": "team", "Value": "ml"}]),
        'create-only Tags was absent and is [{"Key": "team", "Value": "ml"}]; on it hangs TrainingCluster',
    ),
    ("the file system has another logical id", _rename(_FILES), "(AWS::FSx::FileSystem) is gone; on it hangs"),
    (
        "the bucket is of another type",
        _retype(_BUCKET, "AWS::S3Express::DirectoryBucket", words="p4de-foundation/Datasets/"),
        "(AWS::S3::Bucket) is of the type AWS::S3Express::DirectoryBucket now",
    ),
    (
        "the stack has another name",
        lambda stacks: stacks.update(other=stacks.pop(_FOUNDATION)),
        "p4de-foundation: the stack is gone, and FileSystem",
    ),
]


@pytest.mark.parametrize(("change", "text"), [row[1:] for row in _FATAL], ids=[row[0] for row in _FATAL])
def test_a_change_that_replaces_data_is_told(change: Change, text: str) -> None:
    kept = templates(_P4DE)
    now = copy.deepcopy(kept)
    change(now)
    found = replacements(kept, now)
    assert any(text in sentence for sentence in found), found


def test_a_sentence_tells_where_what_and_the_data_on_it() -> None:
    kept = templates(_P4DE)
    group = _only(kept[_FOUNDATION], _GROUP, "FSx for Lustre")
    files = _only(kept[_FOUNDATION], _FILES)
    now = copy.deepcopy(kept)
    _set(_GROUP, "GroupDescription", "Lustre", words="FSx for Lustre")(now)
    assert replacements(kept, now) == [
        f"p4de-foundation: {group} (AWS::EC2::SecurityGroup): create-only GroupDescription was "
        '"FSx for Lustre: the file system and its clients" and is "Lustre"; '
        f"on it hangs {files} (AWS::FSx::FileSystem) of p4de-foundation"
    ]


def _new_rule(stacks: dict[str, Any]) -> None:
    resources = stacks[_FOUNDATION]["Resources"]
    group = resources[_only(stacks[_FOUNDATION], _GROUP, "FSx for Lustre")]["Properties"]
    group["SecurityGroupIngress"].append({"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"})
    resources["More"] = {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"IpProtocol": "-1"}}


def _other_exports(stacks: dict[str, Any]) -> None:
    for output in stacks[_FOUNDATION]["Outputs"].values():
        if "Export" in output:
            output["Export"]["Name"] += "2"


_HARMLESS: list[tuple[str, Change]] = [
    ("nothing changes", lambda _: None),
    ("a group gets a rule", _new_rule),
    ("the file system grows", _set(_FILES, "StorageCapacity", 9600)),
    ("exports have other names", _other_exports),
    ("an instance profile, on which no data hangs, is replaced", _set("AWS::IAM::InstanceProfile", "Path", "/ml/")),
]


@pytest.mark.parametrize("change", [row[1] for row in _HARMLESS], ids=[row[0] for row in _HARMLESS])
def test_a_change_that_replaces_no_data_is_not_told(change: Change) -> None:
    kept = templates(_P4DE)
    now = copy.deepcopy(kept)
    change(now)
    assert replacements(kept, now) == []


def _in_two_stacks() -> dict[str, Any]:
    """Return a placement group in one stack whose reservation's zone is exported by another."""
    return {
        "nodes": {
            "Parameters": {"Strategy": {"Type": "String", "Default": "cluster"}},
            "Resources": {
                "Files": {
                    "Type": _FILES,
                    "Properties": {"SubnetIds": [{"Fn::ImportValue": "base:subnet"}]},
                },
                "Close": {"Type": _PLACEMENT, "Properties": {"Strategy": {"Ref": "Strategy"}}},
            },
        },
        "base": {
            "Resources": {
                "Subnet": {"Type": _SUBNET, "Properties": {"CidrBlock": "10.0.0.0/24"}},
                "Other": {"Type": _SUBNET, "Properties": {"CidrBlock": "10.0.1.0/24"}},
            },
            "Outputs": {
                "Subnet": {"Value": {"Ref": "Subnet"}, "Export": {"Name": "base:subnet"}},
                "Other": {"Value": {"Ref": "Other"}, "Export": {"Name": "base:other"}},
            },
        },
    }


def test_another_subnet_of_another_stack_is_told() -> None:
    now = _in_two_stacks()
    now["nodes"]["Resources"]["Files"]["Properties"]["SubnetIds"] = [{"Fn::ImportValue": "base:other"}]
    (sentence,) = replacements(_in_two_stacks(), now)
    assert sentence.startswith("nodes: Files (AWS::FSx::FileSystem): create-only SubnetIds was")


def test_a_change_in_another_stack_is_told() -> None:
    now = _in_two_stacks()
    now["base"]["Resources"]["Subnet"]["Properties"]["CidrBlock"] = "10.0.2.0/24"
    (sentence,) = replacements(_in_two_stacks(), now)
    assert sentence == (
        'base: Subnet (AWS::EC2::Subnet): create-only CidrBlock was "10.0.0.0/24" and is "10.0.2.0/24"; '
        "on it hangs Files (AWS::FSx::FileSystem) of nodes"
    )


def test_another_value_of_a_parameter_is_told() -> None:
    now = _in_two_stacks()
    now["nodes"]["Parameters"]["Strategy"]["Default"] = "spread"
    (sentence,) = replacements(_in_two_stacks(), now)
    assert sentence.startswith("nodes: Close (AWS::EC2::PlacementGroup): create-only Strategy was")


def test_another_export_of_the_same_subnet_is_not_told() -> None:
    now = _in_two_stacks()
    now["base"]["Outputs"]["Subnet"]["Export"]["Name"] = "base:nodes"
    now["nodes"]["Resources"]["Files"]["Properties"]["SubnetIds"] = [{"Fn::ImportValue": "base:nodes"}]
    assert replacements(_in_two_stacks(), now) == []


def _project(directory: Path, changelog: str) -> Path:
    (directory / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (directory / "CHANGELOG.md").write_text(changelog)
    (directory / "releases" / "1.2.3" / "pod").mkdir(parents=True)
    return directory


def test_the_templates_of_a_release_are_never_written_again(tmp_path: Path) -> None:
    project = _project(tmp_path, "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-12-01\n")
    with pytest.raises(SystemExit, match=r"^error: 1\.2\.3 is released"):
        keep_templates(project)
    assert (tmp_path / "releases" / "1.2.3" / "pod").is_dir()


def test_those_of_a_version_that_is_not_released_are_written_anew(tmp_path: Path) -> None:
    keep_templates(_project(tmp_path, "# Changelog\n\n## [Unreleased]\n\n## [1.2.2] - 2026-11-01\n"))
    assert not (tmp_path / "releases" / "1.2.3" / "pod").exists()

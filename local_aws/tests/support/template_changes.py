"""Changes that make the small legal template of the local AWS's tests wrong."""

from collections.abc import Callable
from typing import Any

from local_aws_scene import ROLE, Template, imported

Change = Callable[[Template], object]


def launch(**data: Any) -> Change:
    """Change launch data; None takes a key away."""

    def change(template: Template) -> None:
        launch = template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]
        for key, value in data.items():
            if value is None:
                launch.pop(key, None)
            else:
                launch[key] = value

    return change


def properties(logical_id: str, **properties: Any) -> Change:
    return lambda template: template["Resources"][logical_id]["Properties"].update(properties)


def lustre(capacity: int | str | None, **configuration: Any) -> Change:
    def change(template: Template) -> None:
        files = template["Resources"]["Files"]["Properties"]
        files["StorageCapacity"] = capacity
        files["LustreConfiguration"] = configuration

    return change


def only(logical_id: str, kind: str, **properties: Any) -> Change:
    def change(template: Template) -> None:
        template["Resources"] = {logical_id: {"Type": kind, "Properties": properties}}
        template.pop("Outputs", None)

    return change


def with_role(logical_id: str, kind: str, **properties: Any) -> Change:
    def change(template: Template) -> None:
        template["Resources"] = {"Role": ROLE, logical_id: {"Type": kind, "Properties": properties}}
        template.pop("Outputs", None)

    return change


def second_link(path: str, repository: str) -> Change:
    def change(template: Template) -> None:
        template["Resources"]["Second"] = {
            "Type": "AWS::FSx::DataRepositoryAssociation",
            "DependsOn": "Link",
            "Properties": {
                "FileSystemId": {"Ref": "Files"},
                "FileSystemPath": path,
                "DataRepositoryPath": {"Fn::Join": ["", ["s3://", imported("Bucket"), repository]]},
            },
        }

    return change


def both(*changes: Change) -> Change:
    return lambda template: [change(template) for change in changes]


def mixed(template: Template) -> None:
    nodes = template["Resources"]["Nodes"]["Properties"]
    nodes["MixedInstancesPolicy"] = {"LaunchTemplate": {"LaunchTemplateSpecification": nodes.pop("LaunchTemplate")}}

"""Systems Manager documents."""

import json
from typing import Any

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    picked,
    tag_changes,
    tags_of,
)


class Document(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ssm-document.html."""

    type = "AWS::SSM::Document"
    carries_out = frozenset(
        {"Content", "DocumentFormat", "DocumentType", "Name", "Tags", "TargetType", "UpdateMethod"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("Name") or call.physical_name(128)
        tags = as_tags(tags_of(properties))
        call.client("ssm").create_document(
            Name=name,
            Content=_text(properties["Content"]),
            DocumentType=properties.get("DocumentType", "Command"),
            **picked(properties, "DocumentFormat", "TargetType"),
            **({"Tags": tags} if tags else {}),
        )
        call.made(name)
        return {}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "Content", "DocumentFormat", "Tags", "UpdateMethod")
        ssm, name = call.client("ssm"), call.physical_id
        if names & {"Content", "DocumentFormat"}:
            if properties.get("UpdateMethod") != "NewVersion":
                raise self.cannot_change(names)
            version = (
                _version_of(ssm, name, _text(properties["Content"]))
                or (
                    ssm.update_document(
                        Name=name,
                        Content=_text(properties["Content"]),
                        DocumentVersion="$LATEST",
                        **picked(properties, "DocumentFormat", "TargetType"),
                    )["DocumentDescription"]["DocumentVersion"]
                )
            )
            ssm.update_document_default_version(Name=name, DocumentVersion=version)
        put, removed = tag_changes(properties, before)
        if put:
            ssm.add_tags_to_resource(ResourceType="Document", ResourceId=name, Tags=as_tags(put))
        if removed:
            ssm.remove_tags_from_resource(ResourceType="Document", ResourceId=name, TagKeys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ssm").delete_document(Name=call.physical_id)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def _version_of(ssm: Any, name: str, content: str) -> str | None:
    """Return the version that has a content already: Systems Manager takes none twice, as after a rollback."""
    latest = int(ssm.describe_document(Name=name, DocumentVersion="$LATEST")["Document"]["DocumentVersion"])
    for version in range(1, latest + 1):
        if ssm.get_document(Name=name, DocumentVersion=str(version))["Content"] == content:
            return str(version)
    return None


HANDLERS: tuple[Handler, ...] = (Document(),)

"""Systems Manager documents."""

import json
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, picked
from local_aws.cloudformation.resources.regular import Regular
from local_aws.cloudformation.resources.tags import retag


class _Document(Regular):
    """A document of which a change is a new version, the default from then on."""

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "Content", "DocumentFormat", "Tags", "UpdateMethod")
        ssm, name, content = call.client("ssm"), call.physical_id, _text(properties["Content"])
        if names & {"Content", "DocumentFormat"}:
            if properties.get("UpdateMethod") != "NewVersion":
                raise self.cannot_change(names)
            version = _version_of(ssm, name, content)
            if version is None:
                version = ssm.update_document(
                    Name=name,
                    Content=content,
                    DocumentVersion="$LATEST",
                    **picked(properties, "DocumentFormat", "TargetType"),
                )["DocumentDescription"]["DocumentVersion"]
            ssm.update_document_default_version(Name=name, DocumentVersion=version)
        retag(call, "ssm", properties, before, **self.tag_also)
        return {}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def _version_of(ssm: Any, name: str, content: str) -> str | None:
    """Return the version that has a content already: Systems Manager takes none twice, as after a rollback."""
    latest = int(ssm.describe_document(Name=name, DocumentVersion="$LATEST")["Document"]["DocumentVersion"])
    for version in range(1, latest + 1):
        if ssm.get_document(Name=name, DocumentVersion=str(version))["Content"] == content:
            return str(version)
    return None


HANDLERS: tuple[Handler, ...] = (
    _Document(
        type="AWS::SSM::Document",
        service="ssm",
        create_with=Action(
            "create_document", "Content DocumentFormat DocumentType TargetType", absent={"DocumentType": "Command"}
        ),
        delete_with=Action("delete_document", id="Name"),
        named="Name:Name",
        name_limit=128,
        tag_also={"ResourceType": "Document"},
        also_supported=frozenset({"UpdateMethod"}),
    ),
)

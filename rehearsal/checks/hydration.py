"""Hydration: what links pass on in either direction, and the documents that nodes run."""

import json
from collections.abc import Mapping
from typing import Any

from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.templates import Resource, of_type


def _documents(deployment: Deployment) -> list[Resource]:
    documents = of_type(deployment.resources, "AWS::SSM::Document")
    return [one for one in documents if one.properties.get("DocumentType") == "Command"]


def _said(deployment: Deployment) -> Facts:
    links = of_type(deployment.resources, "AWS::FSx::DataRepositoryAssociation")
    documents = {one.id: _content(one.properties["Content"]) for one in _documents(deployment)}
    return {**{one.properties["FileSystemPath"]: _policies(one.properties) for one in links}, **documents}


def _found(deployment: Deployment) -> Facts:
    links = {
        one["file_system_path"]: {"imported": one["imported_events"], "exported": one["exported_events"]}
        for one in deployment.found["datasets"]
    }
    ssm = deployment.client("ssm")
    documents = {
        one.id: _content(json.loads(ssm.get_document(Name=one.id)["Content"])) for one in _documents(deployment)
    }
    return {**links, **documents}


def _policies(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    policies = properties.get("S3", {})
    return {
        "imported": policies.get("AutoImportPolicy", {}).get("Events", []),
        "exported": policies.get("AutoExportPolicy", {}).get("Events", []),
    }


def _content(content: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"parameters": content["parameters"], "steps": content["mainSteps"]}


HYDRATION = Check("hydration by", _said, _found)

"""docs/security.md says what checkov reports: its table, the templates and a run of checkov agree."""

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_RELEASE = _ROOT / "releases" / "0.1.0"
_EXAMPLES = ("base-pod", "hardened")
_CHECKOV = _ROOT / "build" / "scanner" / "bin" / "checkov"
_ROW = re.compile(r"^\| (CKV_AWS_\d+) \([^|]+\) \| (\d+) \| (\d+) \|", re.MULTILINE)

# What checkov looks for, with the type of resource: https://www.checkov.io/5.Policy%20Index/cloudformation.html
_FAILS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "CKV_AWS_18": ("AWS::S3::Bucket", lambda properties: "LoggingConfiguration" not in properties),
    "CKV_AWS_26": ("AWS::SNS::Topic", lambda properties: "KmsMasterKeyId" not in properties),
    "CKV_AWS_27": ("AWS::SQS::Queue", lambda properties: "KmsMasterKeyId" not in properties),
    "CKV_AWS_28": (
        "AWS::DynamoDB::Table",
        lambda properties: (
            not properties.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled")
        ),
    ),
    "CKV_AWS_58": ("AWS::EKS::Cluster", lambda properties: "EncryptionConfig" not in properties),
    "CKV_AWS_116": ("AWS::Lambda::Function", lambda properties: "DeadLetterConfig" not in properties),
    "CKV_AWS_117": ("AWS::Lambda::Function", lambda properties: "VpcConfig" not in properties),
    "CKV_AWS_119": (
        "AWS::DynamoDB::Table",
        lambda properties: "KMSMasterKeyId" not in properties.get("SSESpecification", {}),
    ),
    "CKV_AWS_158": ("AWS::Logs::LogGroup", lambda properties: "KmsKeyId" not in properties),
    "CKV_AWS_173": (
        "AWS::Lambda::Function",
        lambda properties: "Environment" in properties and "KmsKeyArn" not in properties,
    ),
}


def _on_the_page(example: str) -> Counter[str]:
    rows = _ROW.findall((_ROOT / "docs" / "security.md").read_text())
    return Counter({check: int(counts[_EXAMPLES.index(example)]) for check, *counts in rows})


def test_the_page_has_a_row_for_each_check() -> None:
    assert set(_on_the_page("base-pod")) == set(_FAILS)


@pytest.mark.parametrize("example", _EXAMPLES)
def test_the_page_counts_what_the_templates_lack(example: str) -> None:
    resources = [
        resource
        for template in (_RELEASE / example).glob("*.template.json")
        for resource in json.loads(template.read_text())["Resources"].values()
    ]
    found = Counter(
        check
        for check, (kind, fails) in _FAILS.items()
        for resource in resources
        if resource["Type"] == kind and fails(resource.get("Properties", {}))
    )
    assert found == _on_the_page(example)


@pytest.mark.sweep("test_the_page_counts_what_the_templates_lack")
@pytest.mark.parametrize("example", _EXAMPLES)
def test_checkov_reports_what_the_page_says(example: str) -> None:
    if not _CHECKOV.exists():
        pytest.skip(reason="make test-scanner installs checkov in an environment of its own")
    ran = subprocess.run(
        [_CHECKOV, "-d", _RELEASE / example, "--framework", "cloudformation", "-o", "json", "--quiet", "--compact"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LOG_LEVEL": "ERROR"},
    )
    failed = json.loads(ran.stdout)["results"]["failed_checks"]
    assert Counter(check["check_id"] for check in failed) == _on_the_page(example)

"""The example of a pipeline: what its stages make, and that its types are right for its readers' checkers."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from examples import PROJECT


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    app = App(outdir=str(tmp_path_factory.mktemp("pipeline")))
    runpy.run_path(str(PROJECT / "examples" / "pipeline.py"))["PipelineStack"](
        app, "Pipeline", account="111122223333"
    )
    return Path(app.synth().directory)


def _template(directory: Path) -> dict[str, Any]:
    (template,) = directory.glob("*Training*.template.json")
    return dict(json.loads(template.read_text())["Resources"])


@pytest.mark.parametrize(
    ("stage", "account", "region", "maximum"),
    [("Test", "222233334444", "us-east-1", "1"), ("Production", "333344445555", "us-west-2", "8")],
)
def test_each_stage_holds_a_cluster_of_its_own(
    assembly: Path, stage: str, account: str, region: str, maximum: str
) -> None:
    directory = assembly / f"assembly-Pipeline-{stage}"
    manifest = json.loads((directory / "manifest.json").read_text())["artifacts"]
    assert f"aws://{account}/{region}" in {each.get("environment") for each in manifest.values()}
    (group,) = (
        each for each in _template(directory).values() if each["Type"] == "AWS::AutoScaling::AutoScalingGroup"
    )
    assert group["Properties"]["MaxSize"] == maximum


def test_production_waits_for_an_approval(assembly: Path) -> None:
    resources = json.loads((assembly / "Pipeline.template.json").read_text())["Resources"].values()
    (pipeline,) = (each for each in resources if each["Type"] == "AWS::CodePipeline::Pipeline")
    actions = {
        stage["Name"]: [action["ActionTypeId"]["Category"] for action in stage["Actions"]]
        for stage in pipeline["Properties"]["Stages"]
    }
    assert "Approval" not in actions["Test"]
    assert actions["Production"][0] == "Approval"


def test_the_source_may_use_its_connection(assembly: Path) -> None:
    resources = json.loads((assembly / "Pipeline.template.json").read_text())["Resources"].values()
    (pipeline,) = (each for each in resources if each["Type"] == "AWS::CodePipeline::Pipeline")
    (source,) = pipeline["Properties"]["Stages"][0]["Actions"]
    assert "RoleArn" not in source
    allowed = {
        action
        for policy in resources
        if policy["Type"] == "AWS::IAM::Policy" and pipeline["Properties"]["RoleArn"]["Fn::GetAtt"][0] in str(policy)
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if source["Configuration"]["ConnectionArn"] in str(statement["Resource"])
        for action in (statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]])
    }
    assert "codeconnections:UseConnection" in allowed

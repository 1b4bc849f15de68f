"""Every example: the same bytes each time, clean for the linters, and as it was when it was last looked at."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

from examples import EXAMPLES, PROJECT, SWEPT_EXAMPLES, run_app, templates, without_asset_hashes
from template_texts import texts_without_a_limit

_WARNING_IDS = re.compile(r"Acknowledge with 'Annotation::(.+)'")

_USUAL_WARNINGS = ("cdk-training-cluster:latestImage", "cdk-training-cluster:noAlerts")
_WARNINGS = {
    # What is made elsewhere, of either stack, and what can never change.
    "hardened": (
        "cdk-training-cluster:accessLogsPolicy",
        "cdk-training-cluster:datasetKeyPolicy",
        *("cdk-training-cluster:encryptionKeyPolicy",) * 2,
        "cdk-training-cluster:fileSystemKey",
    ),
    # The nodes of the block end with it, and others at full price take their place.
    "prioritized": (*_USUAL_WARNINGS, "cdk-training-cluster:prioritizedBlocks"),
    # The nodes install the Lustre client, which there is not for every kernel.
    "trn1": (*_USUAL_WARNINGS, "cdk-training-cluster:lustreClient"),
    # Of each group the image, and of the extras what AWS says of Spot Fleets.
    "spot-elastic": (*_USUAL_WARNINGS, "cdk-training-cluster:latestImage", "cdk-training-cluster:spotFleet"),
}

# cdk-nag is run by a script of its own: it is no part of the app that people copy.
_WITH_NAG = """
import runpy, sys
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks
made = App.synth
def synth(self, *args, **kwargs):
    Validations.of(self).add_plugins(AwsSolutionsChecks(self))
    return made(self, *args, **kwargs)
App.synth = synth
runpy.run_path(sys.argv[1], run_name="__main__")
"""


# Whoever has no AWS at hand: no credentials, no profile, and nobody who answers.
_WITHOUT_AWS = {
    "AWS_ACCESS_KEY_ID": "",
    "AWS_PROFILE": "no-such-profile",
    "AWS_ENDPOINT_URL": "http://localhost:1",
}


@pytest.fixture(scope="module", params=SWEPT_EXAMPLES)
def example(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def assembly(example: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's cloud assembly, made without AWS and read by several tests."""
    output = tmp_path_factory.mktemp("assembly")
    _synthesized(example, output, PYTHONHASHSEED="0", **_WITHOUT_AWS)
    return output


def _synthesized(example: str, output: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    ended = run_app(example, output, variables=variables)
    assert ended.returncode == 0, ended.stderr
    return ended


def _digest(output: Path) -> dict[str, str]:
    # The metadata of messages holds CDK's own stack traces, with the names of its temporary folders.
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file() and not path.name.endswith(".metadata.json")
    }


def test_each_text_has_a_documented_limit_or_is_no_free_text(assembly: Path) -> None:
    found = {text for template in templates(assembly).values() for text in texts_without_a_limit(template)}
    assert sorted(found) == []


def test_there_are_examples() -> None:
    assert [Path(example).stem for example in EXAMPLES] == [
        *("base-pod", "dev-box", "hardened", "p5-capacity-block", "p5-reservation", "p6-b300", "prioritized"),
        *("spot-elastic", "spot", "trn1"),
    ]


def test_the_same_file_gives_the_same_bytes_whatever_the_hash_seed(
    example: str, assembly: Path, tmp_path: Path
) -> None:
    _synthesized(example, tmp_path, PYTHONHASHSEED="4242")
    assert _digest(assembly)
    assert _digest(assembly) == _digest(tmp_path)


def test_synthesis_asks_for_nothing_of_aws(assembly: Path) -> None:
    assert "missing" not in json.loads((assembly / "manifest.json").read_text())


def test_the_resources_are_as_they_were(assembly: Path, snapshot: SnapshotAssertion) -> None:
    for stack, template in templates(assembly).items():
        assert without_asset_hashes(template) == snapshot(name=stack, extension_class=JSONSnapshotExtension)


def test_cfn_lint_finds_nothing_that_is_not_ignored_with_a_reason(assembly: Path) -> None:
    files = sorted(map(str, assembly.glob("*.template.json")))
    assert len(files) == 2
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (linted.stdout, linted.returncode) == ("", 0)


def test_standard_error_holds_nothing_but_our_own_warnings_with_cdk_s_validation_on(
    example: str, tmp_path: Path
) -> None:
    ended = _synthesized(example, tmp_path, CDK_VALIDATION="true")
    entries = [entry for entry in re.split(r"\n\s*\n", ended.stderr.strip()) if entry]
    ids = [found for entry in entries for found in _WARNING_IDS.findall(entry)]
    assert sorted(ids) == sorted(_WARNINGS.get(Path(example).stem, _USUAL_WARNINGS))
    # Where there is a warning, CDK ends with the address of its report.
    assert len(entries) == len(ids) + 1, ended.stderr
    assert entries[-1].startswith("A copy of this report can be found in: ")
    assert ended.stdout == ""


def test_cdk_nag_finds_nothing_that_is_not_acknowledged(example: str, tmp_path: Path) -> None:
    script = tmp_path / "nagged.py"
    script.write_text(_WITH_NAG)
    ended = _nagged(example, script, tmp_path / "out")
    assert ended.returncode == 0, ended.stderr
    assert "AwsSolutions" not in ended.stderr


def test_cdk_nag_would_be_heard(tmp_path: Path) -> None:
    script = tmp_path / "nagged.py"
    open_group = "from aws_cdk import Stack, aws_s3 as s3\ns3.Bucket(Stack(self, 'Open'), 'Bucket')\n"
    script.write_text(
        _WITH_NAG.replace(
            "    Validations.of(self)",
            f"    {open_group.replace(chr(10), chr(10) + '    ')}Validations.of(self)",
        )
    )
    ended = _nagged(EXAMPLES[1], script, tmp_path / "out")
    assert ended.returncode != 0
    assert "AwsSolutions-S1" in ended.stderr


def _nagged(example: str, script: Path, output: Path) -> subprocess.CompletedProcess[str]:
    wrapper = script.with_name("app.py")
    wrapper.write_text(
        f"import sys\nsys.argv = ['app', {str(PROJECT / 'app.py')!r}]\nexec(open({str(script)!r}).read())\n"
    )
    return run_app(PROJECT / example, output, app=wrapper, variables={"CDK_VALIDATION": "true"})

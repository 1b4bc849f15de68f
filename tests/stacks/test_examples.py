"""Every example: the same bytes each time, clean for the linters, and as it was when it was last looked at."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from examples import (
    EXAMPLES,
    EXAMPLES_TOGETHER,
    PROJECT,
    SWEPT_EXAMPLES,
    run_app,
    swept,
    templates,
    without_asset_hashes,
)
from release_templates import RELEASES, VERSION
from template_texts import texts_without_a_limit

_REPORTS = ("validation-report.json",)
_WARNING_IDS = re.compile(r"Acknowledge with 'Annotation::(.+)'")

_USUAL_WARNINGS = ("cdk-training-cluster:latestImage", "cdk-training-cluster:noAlerts")
_WARNINGS = {
    # AWS Batch takes its own image, and keeps it; EKS's image goes with its version.
    **dict.fromkeys(("base-pod", "batch"), ("cdk-training-cluster:noAlerts",)),
    # SageMaker chooses the image, and its prices are no part of the price book.
    **dict.fromkeys(
        ("hyperpod", "hyperpod-eks"), ("cdk-training-cluster:hyperpodPrices", "cdk-training-cluster:noAlerts")
    ),
    # Each step of the ladder answers one of dev-box's warnings, or brings none.
    "alerts": ("cdk-training-cluster:latestImage",),
    **dict.fromkeys(("pinned-image", "scripts", "two-groups", "existing-vpc", "dl1"), ()),
    # What is made elsewhere, of either stack.
    "hardened": (
        "cdk-training-cluster:accessLogsPolicy",
        "cdk-training-cluster:datasetKeyPolicy",
        *("cdk-training-cluster:encryptionKeyPolicy",) * 2,
    ),
    # The nodes of the block end with it, and others at full price take their place.
    "prioritized": (*_USUAL_WARNINGS, "cdk-training-cluster:prioritizedBlocks"),
    # The nodes install the Lustre client, which there is not for every kernel.
    "trn1": (*_USUAL_WARNINGS, "cdk-training-cluster:lustreClient"),
    # Of both groups' images together, and of the extras what AWS says of Spot Fleets.
    "spot-elastic": ("cdk-training-cluster:latestImage", "cdk-training-cluster:spotFleet"),
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


# cdk-nag and CDK's validation take twice as long as the app itself.
_CHECKED = [swept(example, every_change=("hardened",)) for example in EXAMPLES]


@pytest.fixture(params=SWEPT_EXAMPLES)
def example(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def assembly(example: str, assembly_of: Callable[[Path], Path]) -> Path:
    return assembly_of(PROJECT / example)


class Checked(NamedTuple):
    """What cdk-nag, CDK's own validation and the app say of an example, and its cloud assembly."""

    status: int
    said: str
    output: Path


@pytest.fixture
def checked(example: str, once: Callable[[str, Callable[[Path], None]], Path]) -> Checked:
    """The example, made with another hash seed, CDK's validation and cdk-nag."""

    def check(folder: Path) -> None:
        ended = _nagged(example, folder, _WITH_NAG)
        (folder / "ended.json").write_text(json.dumps([ended.returncode, ended.stderr, ended.stdout]))

    folder = once(f"checked-{Path(example).stem}", check)
    status, said, printed = json.loads((folder / "ended.json").read_text())
    assert printed == ""
    return Checked(status, said, folder / "out")


def _digest(output: Path) -> dict[str, str]:
    # The metadata of messages holds CDK's own stack traces, with the names of its temporary folders; the reports are
    # those of the validation.
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file() and not path.name.endswith((".metadata.json", *_REPORTS))
    }


def test_each_text_has_a_documented_limit_or_is_no_free_text(assembly: Path) -> None:
    found = {text for template in templates(assembly).values() for text in texts_without_a_limit(template)}
    assert sorted(found) == []


def test_there_are_examples() -> None:
    assert [Path(example).stem for example in EXAMPLES] == [
        *("alerts", "base-pod", "batch", "dev-box", "dl1", "existing-vpc", "hardened", "hyperpod-eks", "hyperpod"),
        *(
            "p4de",
            "p5-capacity-block",
            "p5-reservation",
            "p6-b300",
            "pinned-image",
            "prioritized",
            "scripts",
            "slurm",
        ),
        *("spot-elastic", "spot", "trn1", "two-groups"),
    ]


@pytest.mark.parametrize("example", _CHECKED)
def test_the_same_file_gives_the_same_bytes_whatever_the_hash_seed(assembly: Path, checked: Checked) -> None:
    assert _digest(assembly)
    assert _digest(assembly) == _digest(checked.output)


def test_synthesis_asks_for_nothing_of_aws(assembly: Path) -> None:
    assert "missing" not in json.loads((assembly / "manifest.json").read_text())


def test_the_templates_are_those_that_are_kept_for_the_next_release(example: str, assembly: Path) -> None:
    """What has changed on purpose is kept by `make release-templates`, and read in its diff."""
    kept = RELEASES / VERSION / Path(example).stem
    assert (kept / "cluster.yaml").read_text() == (PROJECT / example).read_text()
    assert without_asset_hashes(templates(assembly)) == without_asset_hashes(templates(kept))


@pytest.mark.parametrize("examples", EXAMPLES_TOGETHER)
def test_cfn_lint_finds_nothing_that_is_not_ignored_with_a_reason(
    examples: list[str], assembly_of: Callable[[Path], Path]
) -> None:
    assemblies = [assembly_of(PROJECT / example) for example in examples]
    files = sorted(str(file) for assembly in assemblies for file in assembly.glob("*.template.json"))
    assert len(files) == 2 * len(examples)
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (linted.stdout, linted.returncode) == ("", 0)


@pytest.mark.parametrize("example", _CHECKED)
def test_standard_error_holds_nothing_but_our_own_warnings_with_cdk_s_validation_on(
    example: str, checked: Checked
) -> None:
    entries = [entry for entry in re.split(r"\n\s*\n", checked.said.strip()) if entry]
    ids = [found for entry in entries for found in _WARNING_IDS.findall(entry)]
    assert sorted(ids) == sorted(_WARNINGS.get(Path(example).stem, _USUAL_WARNINGS))
    # Where there is a warning, CDK ends with the address of its report.
    assert len(entries) == len(ids) + bool(ids), checked.said
    assert not ids or entries[-1].startswith("A copy of this report can be found in: ")


@pytest.mark.parametrize("example", _CHECKED)
def test_cdk_nag_finds_nothing_that_is_not_acknowledged(checked: Checked) -> None:
    assert checked.status == 0, checked.said
    assert "AwsSolutions" not in checked.said


def test_cdk_nag_finds_what_is_wrong_with_an_app_that_is_run_in_this_way(tmp_path: Path) -> None:
    open_group = "from aws_cdk import Stack, aws_s3 as s3\ns3.Bucket(Stack(self, 'Open'), 'Bucket')\n"
    script = _WITH_NAG.replace(
        "    Validations.of(self)",
        f"    {open_group.replace(chr(10), chr(10) + '    ')}Validations.of(self)",
    )
    ended = _nagged(EXAMPLES[1], tmp_path, script)
    assert ended.returncode != 0
    assert "AwsSolutions-S1" in ended.stderr


def _nagged(example: str, directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    app = directory / "app.py"
    app.write_text(f"import sys\nsys.argv = ['app', {str(PROJECT / 'app.py')!r}]\n{script}")
    variables = {"CDK_VALIDATION": "true", "PYTHONHASHSEED": "4242"}
    return run_app(PROJECT / example, directory / "out", app=app, variables=variables)

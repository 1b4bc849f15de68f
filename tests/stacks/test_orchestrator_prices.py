"""Each unit that a cluster's orchestrator bills has a price source: no price of a healthy cluster stays unknown."""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk_training_cluster.prices import UNITS
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks
from cluster_contract.listings import UNIT_LISTINGS, has_source
from cluster_contract.prices import on_demand_type, unit_price
from cluster_contract.spend import SpendFunctionSettings
from examples import EXAMPLES, PROJECT
from spend_scene import SpendScene
from synthesis import resources

_PCS = "{aws-pcs-controller-small: 0.6, aws-pcs-accounting-small: 0.2, aws-pcs-node: 0.1}"
_REGION = "us-east-1"
_SETTINGS = SpendFunctionSettings.environment_variable
_ORCHESTRATORS = {
    "eks": ("{eks: {control_plane_zone: us-east-1a}}", "{}"),
    "eks with an older Kubernetes": ("{eks: {control_plane_zone: us-east-1a, kubernetes_version: '1.34'}}", "{}"),
    "slurm": ("slurm", _PCS),
    "slurm without accounting": ("{slurm: {accounting: false}}", _PCS),
    "slurm without login nodes": ("{slurm: {login: {count: 0}}}", _PCS),
    "hyperpod": ("hyperpod", "{}"),
    "batch": ("batch", "{}"),
    "none": ("none", "{}"),
}
_FILE = """\
name: pod
availability_zone: us-east-1b
orchestrator: {}
budget: {{monthly_usd: 20000, prices: {}}}
node_groups: [{{name: workers, instance_types: [p5.48xlarge], count: 2, image: latest}}]
"""


def settings_of(file: Path) -> Mapping[str, Any]:
    """Return the settings of a cluster's spend function."""
    with built_stacks(read_cluster_file(file)) as (_, stack):
        functions = resources(stack, "AWS::Lambda::Function").values()
    variables = [
        each["Properties"]["Environment"]["Variables"] for each in functions if "Environment" in each["Properties"]
    ]
    (told,) = [each[_SETTINGS] for each in variables if _SETTINGS in each]
    if isinstance(told, dict):
        told = "".join(part if isinstance(part, str) else "ID" for part in told["Fn::Join"][1])
    found: dict[str, Any] = json.loads(told)
    return found


def emitted(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all prices that the settings of a spend function hold."""
    for units in settings.get("fixed", {}).values():
        yield from units
    yield from settings.get("node", ())
    for group in settings["groups"].values():
        yield from group.get("orchestrator", ())


@pytest.fixture
def written(tmp_path: Path, orchestrator: str) -> Path:
    file = tmp_path / "pod.yaml"
    file.write_text(_FILE.format(*_ORCHESTRATORS[orchestrator]))
    return file


@pytest.mark.parametrize("orchestrator", _ORCHESTRATORS)
def test_every_unit_that_is_emitted_has_a_price_source(written: Path) -> None:
    settings = settings_of(written)
    names = set(emitted(settings))
    assert {name for name in names if not has_source(name, _REGION)} <= set(settings.get("prices", ()))
    assert {name for name in names if on_demand_type(name) is None} <= set(UNITS)


def test_what_the_orchestrator_bills_for_each_node_is_counted_with_its_node_group(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_FILE.format(*_ORCHESTRATORS["slurm"]))
    settings = settings_of(file)
    assert settings["groups"]["workers"]["orchestrator"] == {"aws-pcs-node": 1}
    assert set(settings["fixed"]["orchestrator"]) == {
        "aws-pcs-controller-small",
        "aws-pcs-accounting-small",
        "aws-pcs-node",
        "on-demand m7i.2xlarge",
        "ebs-gp3",
    }


@pytest.mark.parametrize(
    ("orchestrator", "starts"),
    [("eks", {}), ("eks with an older Kubernetes", {"eks-extended-support": "2026-12-02T00:00:00Z"})],
)
def test_extended_support_of_eks_is_counted_from_the_end_of_standard_support(
    written: Path, starts: Mapping[str, str]
) -> None:
    settings = settings_of(written)
    assert settings.get("starts", {}) == starts
    assert {name for name in settings["fixed"]["orchestrator"] if name.startswith("eks-")} == {
        "eks-control-plane",
        *starts,
    }


def test_the_control_plane_under_hyperpod_is_the_users_own_and_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text((PROJECT / "clusters/hyperpod-eks.yaml").read_text() + "\nbudget: {monthly_usd: 20000}\n")
    assert not {name for name in emitted(settings_of(file)) if name.startswith("eks-")}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_budget_could_count_every_example(example: str, tmp_path: Path) -> None:
    text = (PROJECT / example).read_text()
    if "\nbudget:" not in text:
        prices = (
            "{aws-pcs-controller-small: 1, aws-pcs-accounting-small: 1, aws-pcs-node: 1}" if "slurm" in text else "{}"
        )
        text += f"\nbudget: {{monthly_usd: 20000, prices: {prices}}}\n"
    # Some files name others beside them.
    file = Path(shutil.copytree((PROJECT / example).parent, tmp_path / "clusters")) / Path(example).name
    file.write_text(text)
    settings = settings_of(file)
    orchestrator = {name for group in settings["groups"].values() for name in group.get("orchestrator", ())}
    orchestrator |= set(settings["fixed"].get("orchestrator", ()))
    assert {name for name in orchestrator if not has_source(name, _REGION)} <= set(settings.get("prices", ()))


def test_a_budget_refuses_slurm_without_its_prices(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(_FILE.format("slurm", "{aws-pcs-node: 0.1}"))
    with pytest.raises(
        ValueError,
        match=r"^budget\.prices must state the price an hour, in USD, of aws-pcs-accounting-small, "
        r"aws-pcs-controller-small: no price list that this library reads has it, and without it neither the month's "
        r"dollars nor on_exceed would count the orchestrator; look it up at https://aws\.amazon\.com/pcs/pricing/$",
    ):
        settings_of(file)


def test_the_control_plane_of_eks_costs_what_aws_says() -> None:
    for name, usd in {"eks-control-plane": "0.1", "eks-extended-support": "0.5"}.items():
        found = unit_price(name, _REGION)
        assert found is not None
        assert (str(found.usd), found.source, found.as_of) == (
            usd,
            "https://aws.amazon.com/eks/pricing/",
            "2026-09-18",
        )


def test_the_price_list_is_asked_for_units_of_the_book_alone() -> None:
    assert set(UNIT_LISTINGS) <= set(UNITS)


@pytest.mark.parametrize("orchestrator", ["eks", "slurm", "hyperpod"])
def test_no_price_is_unknown_and_the_month_has_the_orchestrator_after_the_first_run(written: Path) -> None:
    settings = settings_of(written)
    scene = SpendScene(
        details={"fixed": {"orchestrator": settings["fixed"]["orchestrator"]}, "prices": settings.get("prices", {})}
    )
    scene.pricing.usd = {
        "m7i.large": ("0.1008",),
        "m7i.2xlarge": ("0.4032",),
        **{f"Cluster:{name}": ("1.5",) for name in ("ml.m5.2xlarge", "ml.p5.48xlarge")},
    }
    summary = scene.tick()
    assert summary["unknown_prices"] == []
    scene.tick(60)
    assert scene.spent() > 0.1

"""`training-cluster init`, whatever is answered: a file that `check` takes, or one sentence that says what to do."""

import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from cdk_training_cluster_cli.prepare import commands as beginning
from cdk_training_cluster_cli.prepare.init.command import Given, Zones, run
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_file.orchestrators.choice import ORCHESTRATORS

_OFFLINE = Zones(profile=None, live=False)
_AMI = "ami-0a1b2c3d4e5f67890"
_PCS = ("aws-pcs-controller-small=0.6", "aws-pcs-accounting-small=0.2", "aws-pcs-node=0.1")
_GIVEN = st.builds(
    Given,
    instance_type=st.sampled_from(["p5.48xlarge", "trn1.32xlarge", "trn2.48xlarge", "g5.xlarge", "p3.2xlarge"]),
    nodes=st.none() | st.sampled_from(["1", "2", "40"]),
    zone=st.sampled_from(["us-east-1b", "eu-central-1a", "us-gov-west-1a"]),
    orchestrator=st.none() | st.sampled_from(ORCHESTRATORS),
    buy=st.none() | st.sampled_from(["on_demand", "spot", "reservation", "from_reservation", "capacity_block"]),
    capacity_id=st.none() | st.just("cr-0a1b2c3d4e5f67890"),
    image=st.none() | st.sampled_from([_AMI, "latest", "ubuntu"]),
    prices=st.sampled_from([(), _PCS, _PCS[:1], ("nothing",), ("aws-pcs-node=-1",)]),
    dataset=st.none() | st.just("4TiB"),
    budget=st.none() | st.just("20,000"),
)


def _run(file: Path, given: Given) -> str | None:
    try:
        run(file, given, zones=_OFFLINE)
    except ValueError as error:
        return str(error)
    return None


@drawn(given=_GIVEN)
@settings(max_examples=12)
def test_answers_make_a_file_or_one_sentence(given: Given, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("drawn") / "llama.yaml"
    sentence = _run(file, given)
    if sentence is None:
        assert read_cluster_file(file).name == "llama"
        return
    assert not file.exists()
    assert "\n" not in sentence
    # An empty word, as of an empty list.
    assert re.search(r"  | or ,|be  or|, or ,", sentence) is None, sentence


_CASES = {
    "an orchestrator that buys in one way": (
        Given(instance_type="p5.48xlarge", orchestrator="hyperpod", buy="spot"),
        "--buy must be on_demand, got 'spot': SageMaker HyperPod on Slurm buys Spot Instances on EKS alone; use "
        "on_demand, or HyperPod on EKS (orchestrator: eks)",
    ),
    "a reservation for HyperPod": (
        Given(instance_type="p5.48xlarge", orchestrator="hyperpod", buy="capacity_block"),
        "--buy must be on_demand, got 'capacity_block': SageMaker HyperPod on Slurm launches into capacity that "
        "SageMaker reserves; buy a training plan and use capacity: {training_plan: {arn: arn:…}} in the file",
    ),
    "Spot for AWS Batch": (
        Given(instance_type="g5.xlarge", orchestrator="batch", buy="spot"),
        "--buy must be on_demand, reservation or from_reservation, got 'spot': AWS Batch runs no multi-node jobs on "
        "Spot Instances; use on_demand",
    ),
    "a way that there is not": (
        Given(instance_type="g5.xlarge", buy="cheap"),
        "--buy must be on_demand, reservation, from_reservation or spot, got 'cheap'",
    ),
    "Trainium on Slurm": (
        Given(instance_type="trn1.32xlarge", orchestrator="slurm"),
        "--image is required: AWS publishes no image for trn1.32xlarge on AWS PCS; give the id of one of yours for "
        "x86_64",
    ),
    "a budget for Slurm": (
        Given(instance_type="p5.48xlarge", orchestrator="slurm", budget="10"),
        "with --budget, --price aws-pcs-accounting-small=USD --price aws-pcs-controller-small=USD --price "
        "aws-pcs-node=USD are required: look the prices an hour up at https://aws.amazon.com/pcs/pricing/",
    ),
    "a price of a name that nothing has": (
        Given(instance_type="p5.48xlarge", budget="10", prices=("p5.48xlrge=40",)),
        "--price must name an instance type (p5.48xlarge or ml.p5.48xlarge), a reservation (cr-0a1b2c3d4e5f67890), a "
        "Spot price (spot p5.48xlarge us-east-1b) or a unit, got 'p5.48xlrge': did you mean p5.48xlarge or "
        "p5e.48xlarge?",
    ),
    "a price that is given twice": (
        Given(instance_type="p5.48xlarge", budget="10", prices=("p5.48xlarge=40", "p5.48xlarge=4")),
        "--price p5.48xlarge is given twice; leave one of them out",
    ),
    "a region that there is not": (
        Given(instance_type="p5.48xlarge", region="eu-west-9"),
        "--region must name a region of AWS, got 'eu-west-9'; did you mean eu-west-3 or eu-west-2?",
    ),
    "a zone of a region that there is not": (
        Given(instance_type="p5.48xlarge", zone="eu-west-9a"),
        "--availability-zone must name a region of AWS, got 'eu-west-9'; did you mean eu-west-3 or eu-west-2?",
    ),
    "a price without a budget": (
        Given(instance_type="p5.48xlarge", orchestrator="slurm", prices=_PCS),
        "--price goes with --budget, which uses it; give that too, or leave --price out",
    ),
}


@pytest.mark.parametrize(("given", "sentence"), _CASES.values(), ids=_CASES)
def test_what_an_orchestrator_needs_is_one_sentence(given: Given, sentence: str, tmp_path: Path) -> None:
    assert _run(tmp_path / "llama.yaml", given) == sentence


@pytest.mark.parametrize("instance_type", ["trn1.32xlarge", "trn2.48xlarge"])
@pytest.mark.parametrize("orchestrator", ["slurm", "batch"])
def test_an_image_of_ones_own_lets_trainium_run_on_orchestrators_without_one(
    instance_type: str, orchestrator: str, tmp_path: Path
) -> None:
    file = tmp_path / "llama.yaml"
    prices = _PCS if orchestrator == "slurm" else ()
    given = Given(instance_type=instance_type, orchestrator=orchestrator, image=_AMI, budget="20000", prices=prices)
    assert _run(file, given) is None
    cluster = read_cluster_file(file)
    assert cluster.node_groups[0].image == _AMI
    assert cluster.budget is not None
    assert set(cluster.budget.prices) == {price.partition("=")[0] for price in prices}


def test_a_terminal_is_asked_for_the_image_and_the_prices(tmp_path: Path) -> None:
    asked = []

    def ask(question: str, default: str | None) -> str:
        asked.append(question)
        return {"AWS publishes": _AMI, "What does": "0.5"}.get(" ".join(question.split()[:2]), default or "")

    file = tmp_path / "llama.yaml"
    given = Given(instance_type="trn1.32xlarge", zone="us-east-1b", orchestrator="slurm", budget="20000")
    run(file, given, zones=_OFFLINE, ask=ask)
    cluster = read_cluster_file(file)
    assert cluster.node_groups[0].image == _AMI
    assert cluster.budget is not None
    assert set(cluster.budget.prices.values()) == {0.5}
    assert (
        "What does small controller of AWS PCS cost an hour, in USD? (https://aws.amazon.com/pcs/pricing/)" in asked
    )


def test_enter_on_a_question_without_a_default_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("\n8\n" + "\n" * 12))
    run(tmp_path / "llama.yaml", Given(), zones=_OFFLINE, ask=beginning._ask)
    assert "--accelerators must be a whole number from 1 to 10000, got ''" in capsys.readouterr().err


_PRICES = {
    "on_demand": r"\$[\d,.]+ an hour on demand \(us-east-1\)",
    "reservation": r"\$[\d,.]+ an hour reserved, used or not \(us-east-1\)",
    "from_reservation": "unknown: your reservation is billed, used or not",
    "spot": r"\$[\d,.]+ to \$[\d,.]+ an hour on Spot \(us-east-1\)",
    "capacity_block": "unknown: a Capacity Block is paid for when it is bought",
}


@pytest.mark.parametrize(("buy", "price"), _PRICES.items(), ids=_PRICES)
def test_the_price_is_that_of_the_chosen_way(
    buy: str, price: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = "cr-0a1b2c3d4e5f67890" if buy in ("from_reservation", "capacity_block") else None
    given = Given(instance_type="p5.48xlarge", zone="us-east-1b", buy=buy, capacity_id=held)
    assert _run(tmp_path / "llama.yaml", given) is None
    assert re.search(rf"; price {price}$", capsys.readouterr().out.splitlines()[0])


def test_a_type_that_goes_into_no_cluster_placement_group_is_written_without_one(tmp_path: Path) -> None:
    file = tmp_path / "llama.yaml"
    assert _run(file, Given(instance_type="vt1.6xlarge", image=_AMI)) is None
    assert read_cluster_file(file).node_groups[0].placement == "none"


def test_the_name_of_the_file_must_be_one_of_a_cluster_where_no_other_is_given(tmp_path: Path) -> None:
    sentence = _run(tmp_path / "none-on_demand.yaml", Given(instance_type="g5.xlarge"))
    assert sentence == (
        "--name, which is by default the name of the file, must be lower-case letters, digits and hyphens, with a "
        "letter first, got 'none-on_demand'"
    )

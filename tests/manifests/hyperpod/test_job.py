"""Jobs for the HyperPod training operator: what AWS excludes is refused in one sentence, and the rest is rendered."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdk_training_cluster_file.problems import ClusterFileError
from cdk_training_cluster_manifests.hyperpod.job import HyperPodJob
from cdk_training_cluster_manifests.hyperpod.manifest import manifests
from cdk_training_cluster_manifests.hyperpod.reading import read_job
from cdk_training_cluster_manifests.hyperpod.recipes import IMAGE_REGIONS, RECIPES
from examples import PROJECT, swept

_JOBS = sorted(PROJECT.glob("examples/hyperpod/*.yaml"))
_ELASTIC = {"min_replicas": 2, "max_replicas": 8, "replica_increment_step": 2}
_OWN = {
    "name": "mine",
    "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/mine:1",
    "arguments": ["train.py"],
    "instance_type": "ml.p5.48xlarge",
    "global_batch_size": 192,
}
_RECIPE = {
    "name": "llama",
    "region": "us-east-1",
    "recipe": "training/llama/checkpointless_llama3_70b_pretrain",
    "instance_type": "ml.p5.48xlarge",
}
_RECIPE_OF_LORA = {**_RECIPE, "recipe": "fine-tuning/llama/llmft_llama3_3_70b_instruct_seq4k_gpu_sft_lora"}
_UNEVEN = {"small_local_batch_size": 2, "large_local_batch_size": 3, "num_dp_groups_with_small_batch_size": 16}

_REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "elastic and checkpointless": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 4}, "checkpointless": True},
        "HyperPod runs no job that is both elastic and checkpointless; leave one of them out",
    ),
    "checkpointless without a recipe that is": (
        _OWN,
        {"nodes": 4, "checkpointless": True},
        "checkpointless: true needs a checkpointless recipe; name one of "
        f"{' and '.join(name for name, each in RECIPES.items() if each.checkpointless)}, or leave it out",
    ),
    "elastic with a checkpointless recipe": (
        _RECIPE,
        {"elastic": {"min_replicas": 8, "max_replicas": 16, "replica_increment_step": 8}},
        "HyperPod runs no job that is both elastic and checkpointless; leave one of them out",
    ),
    "elastic and tiered": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 4}, "tiered_checkpointing": True},
        "HyperPod's managed tiered checkpointing does not work with elastic training; leave one of them out",
    ),
    "elastic on Spot": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 4}, "spot": True},
        "HyperPod runs no elastic job on Spot Instances; leave one of them out",
    ),
    "checkpointless and tiered": (
        _RECIPE,
        {"tiered_checkpointing": True},
        "HyperPod's managed tiered checkpointing does not work with checkpointless training; leave one of them out",
    ),
    "a type that the recipe is not verified on": (
        _RECIPE,
        {"instance_type": "ml.p4de.24xlarge"},
        "recipe training/llama/checkpointless_llama3_70b_pretrain is written for ml.p5.48xlarge and "
        "ml.p5e.48xlarge, got ml.p4de.24xlarge; take one of these, or your own image and settings without recipe",
    ),
    "minimum above maximum": (
        _OWN,
        {"elastic": {**_ELASTIC, "min_replicas": 9}},
        "elastic: min_replicas 9 is above max_replicas 8; lower it or raise max_replicas",
    ),
    "both kinds of steps": (
        _OWN,
        {"elastic": {**_ELASTIC, "replica_discrete_values": [2, 4]}},
        "elastic: the operator takes exactly one of replica_increment_step and replica_discrete_values; "
        "both are given",
    ),
    "neither kind of steps": (
        _OWN,
        {"elastic": {"min_replicas": 2, "max_replicas": 8}},
        "elastic: the operator takes exactly one of replica_increment_step and replica_discrete_values; "
        "neither is given",
    ),
    "AWS's own example: maximum 4, value 8": (
        _OWN,
        {"elastic": {"min_replicas": 1, "max_replicas": 4, "replica_discrete_values": [2, 4, 8]}},
        "elastic: replica_discrete_values 8 lie outside 1 to 4; leave them out, or widen min_replicas and "
        "max_replicas",
    ),
    "a maximum that no value reaches": (
        _OWN,
        {"elastic": {"min_replicas": 1, "max_replicas": 8, "replica_discrete_values": [1, 2, 4]}},
        "elastic: min_replicas 1 and max_replicas 8 must be the least and the greatest of replica_discrete_values, "
        "which are 1 and 4",
    ),
    "steps that miss the maximum": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 7}},
        "elastic: steps of 2 from min_replicas 2 reach 6 and 8, never max_replicas 7; set max_replicas to one of "
        "them",
    ),
    "half a pair of priorities": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 4, "base_priority_class": "high"}},
        "elastic: base_priority_class and elastic_priority_class go together: the nodes up to min_replicas have the "
        "first, the others the second; give both or neither",
    ),
    "a batch that the ranks do not divide": (
        _OWN,
        {"nodes": 5},
        "global_batch_size 192 cannot be divided by the 40 data-parallel ranks of 5 nodes; take a multiple of 40, "
        "leave that size out, or set uneven_batch.5",
    ),
    "one size of many": (
        _OWN,
        {"elastic": _ELASTIC, "global_batch_size": 128},
        "global_batch_size 128 cannot be divided by the 48 data-parallel ranks of 6 nodes; take a multiple of 48, "
        "leave that size out, or set uneven_batch.6",
    ),
    "an uneven batch of another size": (
        _OWN,
        {"nodes": 6, "uneven_batch": {6: _UNEVEN}},
        "uneven_batch of 6 nodes gives 128 samples to 48 ranks, not the global_batch_size 192: small x groups + "
        "large x (ranks - groups) must be equal to it",
    ),
    "an uneven batch for no size": (
        _OWN,
        {"nodes": 3, "uneven_batch": {6: _UNEVEN}},
        "uneven_batch names 6 nodes, on which the job never runs; leave it out",
    ),
    "nodes that hold no whole model": (
        _RECIPE,
        {"nodes": 3},
        "3 nodes have 24 GPUs, which copies of the model on 32 GPUs each do not fill; take a count of nodes whose "
        "GPUs are a multiple of 32",
    ),
    "a start between the sizes": (
        _OWN,
        {"elastic": {**_ELASTIC, "max_replicas": 4}, "nodes": 3},
        "nodes 3 is no size of the elastic job, which runs on 2, 4; start it with one of these",
    ),
    "a size that the recipe has no settings for": (
        _RECIPE_OF_LORA,
        {
            "elastic": {"min_replicas": 2, "max_replicas": 12, "replica_discrete_values": [2, 12]},
            "global_batch_size": 768,
        },
        "recipe fine-tuning/llama/llmft_llama3_3_70b_instruct_seq4k_gpu_sft_lora has settings for 1, 2, 4, 6, 8, 16 "
        "nodes, not for 12; name sizes of the recipe in elastic.replica_discrete_values",
    ),
    "a quota below the job": (
        _OWN,
        {"nodes": 4, "spares": 1, "quota_nodes": 4},
        "quota_nodes 4 is below the 5 nodes that the job may take; raise it",
    ),
    "nothing to run": (
        {"name": "mine", "instance_type": "ml.p5.48xlarge"},
        {},
        "a job without recipe needs image and arguments and global_batch_size; add them, or name a recipe",
    ),
    "a recipe without region": (
        {key: value for key, value in _RECIPE.items() if key != "region"},
        {},
        "recipe training/llama/checkpointless_llama3_70b_pretrain needs region, whose registry has its image; add "
        "it, or an image of your own",
    ),
    "arguments that the recipe does not read": (
        _RECIPE_OF_LORA,
        {"arguments": ["--fast"]},
        "recipe fine-tuning/llama/llmft_llama3_3_70b_instruct_seq4k_gpu_sft_lora takes its arguments from its "
        "ConfigMap; leave arguments out",
    ),
    "EC2's name of a type": (
        _OWN,
        {"instance_type": "p5.48xlarge"},
        "instance_type must be one of HyperPod's types with NVIDIA GPUs, such as ml.p5.48xlarge, got p5.48xlarge",
    ),
    "a type that does not exist": (
        _OWN,
        {"instance_type": "ml.p5.47xlarge"},
        "instance_type must be one of HyperPod's types with NVIDIA GPUs, such as ml.p5.48xlarge, got ml.p5.47xlarge",
    ),
    "an unknown key": (_OWN, {"spare": 1}, "spare: unknown key; did you mean spares?"),
}


@pytest.mark.parametrize(("good", "change", "sentence"), _REFUSED.values(), ids=_REFUSED)
def test_a_job_that_cannot_run_is_refused_in_a_sentence(
    good: dict[str, Any], change: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(good | change))
    with pytest.raises(ClusterFileError) as refused:
        read_job(file)
    (problem,) = refused.value.problems
    assert str(refused.value).endswith(f": {sentence}"), problem


def _documents(job: HyperPodJob) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifests(job)))


@pytest.mark.parametrize("file", _JOBS, ids=lambda path: path.stem)
def test_an_example_asks_for_whole_nodes_within_its_quota(file: Path) -> None:
    job = read_job(file)
    *quotas, manifest = _documents(job)
    assert len(quotas) == (1 if job.elastic else 0), "an elastic job grows greedily: it always has a quota"
    most = 0
    for replicas in manifest["spec"]["replicaSpecs"]:
        (container,) = replicas["template"]["spec"]["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
        assert str(container["image"]).split(".")[3] in IMAGE_REGIONS
        most += replicas.get("maxReplicas", replicas["replicas"]) + replicas.get("spares", 0)
    for quota in quotas:
        assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == str(8 * most)


def test_a_job_of_two_priorities_keeps_its_first_nodes() -> None:
    manifest = _documents(read_job(PROJECT / "examples/hyperpod/llama3-70b-elastic.yaml"))[-1]
    base, more = manifest["spec"]["replicaSpecs"]
    assert (base["replicas"], more["replicas"], more["maxReplicas"]) == (2, 0, 14)
    assert [each["template"]["spec"]["priorityClassName"] for each in (base, more)] == [
        "high-priority",
        "low-priority",
    ]


def test_spares_are_in_the_manifest_of_each_kind_of_job() -> None:
    elastic = {**_ELASTIC, "max_replicas": 4}
    priorities = {"base_priority_class": "high", "elastic_priority_class": "low"}
    for change in ({"nodes": 4}, {"elastic": elastic}, {"elastic": elastic | priorities}):
        job = HyperPodJob.model_validate({**_OWN, **change, "spares": 2})
        specs = _documents(job)[-1]["spec"]["replicaSpecs"]
        assert sum(each.get("maxReplicas", each["replicas"]) + each.get("spares", 0) for each in specs) == job.quota


@pytest.mark.parametrize("setting", ["spot", "tiered_checkpointing"])
def test_what_the_manifest_does_not_make_is_said_in_it(setting: str) -> None:
    plain = {**_OWN, "nodes": 4}
    told = set(manifests(HyperPodJob.model_validate({**plain, setting: True})).splitlines())
    assert told - set(manifests(HyperPodJob.model_validate(plain)).splitlines())


def test_an_own_image_is_launched_by_the_operators_agent() -> None:
    job = HyperPodJob.model_validate({**_OWN, "nodes": 6, "global_batch_size": 128, "uneven_batch": {6: _UNEVEN}})
    (container,) = _documents(job)[-1]["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
    assert [*container["command"], *container["args"]] == [
        *("hyperpodrun", "--nnodes=6", "--nproc-per-node=8", "--rdzv-backend=hyperpod", "train.py")
    ]


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_renders_as_it_is_written(name: str) -> None:
    recipe = RECIPES[name]
    for instance_type in recipe.instance_types:
        job = HyperPodJob.model_validate({**_RECIPE, "recipe": name, "instance_type": instance_type})
        (container,) = _documents(job)[-1]["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
        given = {each["name"]: each["value"] for each in container["env"]}
        assert recipe.environment.items() <= given.items()
        if recipe.checkpointless:
            assert container["command"][-1].count("fault_prob_") == 5, "the image's configuration injects faults"


@pytest.fixture(scope="session")
def hyperpod_models() -> Any:
    """HyperPod's own models, from its wheel, of which nothing is installed."""
    folder = PROJECT / "build/hyperpod"
    if not (wheels := list(folder.glob("*.whl"))):
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*download, "sagemaker-hyperpod==3.12.0"], check=False, timeout=60, capture_output=True)
        wheels = list(folder.glob("*.whl"))
    if not wheels:
        pytest.skip(reason="sagemaker-hyperpod cannot be downloaded: no job was compared with its models")
    module = "sagemaker/hyperpod/training/config/hyperpod_pytorch_job_unified_config.py"
    (folder / "models.py").write_bytes(zipfile.ZipFile(wheels[0]).read(module))
    spec = importlib.util.spec_from_file_location("hyperpod_models", folder / "models.py")
    assert spec
    assert spec.loader
    models = importlib.util.module_from_spec(spec)
    sys.modules["hyperpod_models"] = models  # pydantic looks the names of types up there
    spec.loader.exec_module(models)
    return models


@pytest.mark.parametrize("file", [swept(each, (_JOBS[0].stem,)) for each in _JOBS])
def test_hyperpods_own_models_take_an_example(file: Path, hyperpod_models: Any) -> None:
    spec = _documents(read_job(file))[-1]["spec"]
    read = hyperpod_models._HyperPodPytorchJob.model_validate(spec, by_alias=False, by_name=True)
    assert read.model_dump(exclude_unset=True) == spec


def test_a_file_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: a\nname: b\n")
    with pytest.raises(ClusterFileError, match="name"):
        read_job(file)

"""A job for the HyperPod training operator, and every rule that AWS states of elastic and checkpointless ones.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-elastic-training.html
https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-checkpointless-considerations.html
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, model_validator

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info, instance_type_names
from cdk_training_cluster_file.forms import Choice, Text
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_manifests.hyperpod.recipes import IMAGE_REGIONS, RECIPES, Recipe

Count = Annotated[StrictInt, Field(ge=1)]
_Label = Annotated[
    str,
    Text(
        pattern=r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?",
        must="be lower-case letters, digits and hyphens, as Kubernetes names are",
        longest=63,
        because="Kubernetes' limit",
    ),
]


class UnevenBatch(Settings):
    """How a global batch is shared by ranks that do not divide it, in the words of AWS's recipes."""

    small_local_batch_size: Count
    large_local_batch_size: Count
    num_dp_groups_with_small_batch_size: Count

    def samples(self, ranks: int) -> int:
        """Return the samples of one optimizer step."""
        small = self.num_dp_groups_with_small_batch_size
        return self.small_local_batch_size * small + self.large_local_batch_size * (ranks - small)


class ElasticPolicy(Settings):
    """How far and in which steps the operator scales a job, in the operator's words."""

    min_replicas: Count
    max_replicas: Count
    replica_increment_step: Count | None = None
    replica_discrete_values: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    scaling_timeout_in_seconds: Count = 60
    graceful_shutdown_timeout_in_seconds: Count = 600
    faulty_scale_down_timeout_in_seconds: Count = 30
    base_priority_class: _Label | None = None
    elastic_priority_class: _Label | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The counts of nodes that the job can run on."""
        if self.replica_discrete_values:
            return tuple(sorted(set(self.replica_discrete_values)))
        return tuple(range(self.min_replicas, self.max_replicas + 1, self.replica_increment_step or 1))

    def problems(self) -> Iterator[str]:
        """Yield what contradicts itself, a sentence each."""
        least, most = self.min_replicas, self.max_replicas
        step, values = self.replica_increment_step, self.replica_discrete_values
        if least > most:
            yield f"elastic: min_replicas {least} is above max_replicas {most}; lower it or raise max_replicas"
        if (step is None) == (values is None):
            given = "both are given" if step else "neither is given"
            yield (
                "elastic: the operator takes exactly one of replica_increment_step and replica_discrete_values; "
                f"{given}"
            )
        if outside := [value for value in values or () if not least <= value <= most]:
            yield (
                f"elastic: replica_discrete_values {', '.join(map(str, outside))} lie outside {least} to {most}; "
                "leave them out, or widen min_replicas and max_replicas"
            )
        elif values and not step and (min(values), max(values)) != (least, most):
            yield (
                f"elastic: min_replicas {least} and max_replicas {most} must be the least and the greatest of "
                f"replica_discrete_values, which are {min(values)} and {max(values)}"
            )
        if step and least <= most and (most - least) % step:
            reached = most - (most - least) % step
            yield (
                f"elastic: steps of {step} from min_replicas {least} reach {reached} and {reached + step}, never "
                f"max_replicas {most}; set max_replicas to one of them"
            )
        if (self.base_priority_class is None) != (self.elastic_priority_class is None):
            yield (
                "elastic: base_priority_class and elastic_priority_class go together: the nodes up to min_replicas "
                "have the first, the others the second; give both or neither"
            )


class HyperPodJob(Settings):
    """A training job on HyperPod with EKS, of one of AWS's recipes or of one's own image.

    `spot` and `tiered_checkpointing` say of what kind the nodes and the checkpoints are, so that what AWS excludes is
    refused; the instance group and the training script make them so, not the manifest.
    """

    name: Annotated[_Label, Field(examples=["llama-pretrain"])]
    namespace: _Label = "default"
    region: Annotated[str, Choice(IMAGE_REGIONS, "the regions that have AWS's images for recipes")] | None = None
    recipe: Annotated[str, Choice(tuple(RECIPES), "the recipes whose facts this version knows")] | None = None
    image: str | None = None
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    instance_type: Annotated[str, Field(examples=["ml.p5.48xlarge"])]
    nodes: Count | None = None
    spares: Annotated[StrictInt, Field(ge=0)] = 0
    elastic: ElasticPolicy | None = None
    checkpointless: StrictBool = False
    tiered_checkpointing: StrictBool = False
    spot: StrictBool = False
    global_batch_size: Count | None = None
    model_ranks: Count | None = None
    uneven_batch: dict[int, UnevenBatch] = Field(default_factory=dict)
    file_system_claim: _Label = "fsx-claim"
    dataset_path: str | None = None
    weights_path: str | None = None
    queue: _Label | None = None
    priority_class: _Label | None = None
    quota_nodes: Count | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> "HyperPodJob":
        found = list(self._problems())
        if found:
            raise ValueError("\n".join(found))
        return self

    @cached_property
    def known_recipe(self) -> Recipe | None:
        """The recipe's facts; None: the job has an image of its own."""
        return RECIPES[self.recipe] if self.recipe else None

    @cached_property
    def node(self) -> InstanceTypeInfo:
        """What one node has."""
        return instance_type_info(self.instance_type.removeprefix("ml."))

    @property
    def is_checkpointless(self) -> bool:
        """Whether the job recovers from copies of the model in GPU memory."""
        return self.checkpointless or (self.known_recipe is not None and self.known_recipe.checkpointless)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The counts of nodes that the job can run on, sorted."""
        return self.elastic.sizes if self.elastic else (self.first_size,)

    @property
    def first_size(self) -> int:
        """How many nodes the job starts with."""
        if self.nodes:
            return self.nodes
        if self.elastic:
            return self.elastic.sizes[0] if self.elastic.sizes else self.elastic.min_replicas
        return self.known_recipe.nodes if self.known_recipe else 1

    @property
    def quota(self) -> int:
        """How many nodes the namespace's ResourceQuota allows."""
        return self.quota_nodes or self.sizes[-1] + self.spares

    def _problems(self) -> Iterator[str]:
        prefix, _, name = self.instance_type.partition(".")
        gpus = self.node.nvidia_gpu_count if prefix == "ml" and name in instance_type_names() else 0
        if not gpus:
            yield (
                "instance_type must be one of HyperPod's types with NVIDIA GPUs, such as ml.p5.48xlarge, got "
                f"{self.instance_type}"
            )
            return
        policy = list(self.elastic.problems()) if self.elastic else []
        yield from policy
        yield from self._exclusions()
        yield from self._useless()
        yield from self._unknown_image()
        yield from self._against_the_recipe()
        if not policy:
            yield from self._impossible_sizes()
            yield from self._impossible_batches(gpus)

    def _exclusions(self) -> Iterator[str]:
        without = "leave one of them out"
        if self.elastic and self.is_checkpointless:
            yield f"HyperPod runs no job that is both elastic and checkpointless; {without}"
        if self.elastic and self.tiered_checkpointing:
            yield f"HyperPod's managed tiered checkpointing does not work with elastic training; {without}"
        if self.elastic and self.spot:
            yield f"HyperPod runs no elastic job on Spot Instances; {without}"
        if self.is_checkpointless and self.tiered_checkpointing:
            yield f"HyperPod's managed tiered checkpointing does not work with checkpointless training; {without}"

    def _useless(self) -> Iterator[str]:
        recipe = self.known_recipe
        if self.checkpointless and not self.elastic and not (recipe and recipe.checkpointless):
            known = " and ".join(name for name, each in RECIPES.items() if each.checkpointless)
            yield f"checkpointless: true needs a checkpointless recipe; name one of {known}, or leave it out"

    def _unknown_image(self) -> Iterator[str]:
        if self.known_recipe is None:
            missing = [name for name in ("image", "arguments", "global_batch_size") if not getattr(self, name)]
            if missing:
                yield f"a job without recipe needs {' and '.join(missing)}; add them, or name a recipe"
        elif self.image is None and self.region is None:
            yield f"recipe {self.recipe} needs region, whose registry has its image; add it, or an image of your own"

    def _against_the_recipe(self) -> Iterator[str]:
        recipe = self.known_recipe
        if recipe is None:
            return
        if self.instance_type not in recipe.instance_types:
            yield (
                f"recipe {self.recipe} is written for {' and '.join(recipe.instance_types)}, got "
                f"{self.instance_type}; take one of these, or your own image and settings without recipe"
            )
        if unknown := sorted(set(self.sizes) - set(recipe.sizes)) if self.elastic and recipe.sizes else []:
            yield (
                f"recipe {self.recipe} has settings for {', '.join(map(str, recipe.sizes))} nodes, not for "
                f"{', '.join(map(str, unknown))}; name sizes of the recipe in elastic.replica_discrete_values"
            )
        if self.arguments and recipe.sizes:
            yield f"recipe {self.recipe} takes its arguments from its ConfigMap; leave arguments out"

    def _impossible_sizes(self) -> Iterator[str]:
        if self.elastic and self.first_size not in self.sizes:
            yield (
                f"nodes {self.first_size} is no size of the elastic job, which runs on "
                f"{', '.join(map(str, self.sizes))}; start it with one of these"
            )
        needed = self.sizes[-1] + self.spares
        if self.quota < needed:
            yield f"quota_nodes {self.quota} is below the {needed} nodes that the job may take; raise it"

    def _impossible_batches(self, gpus: int) -> Iterator[str]:
        recipe = self.known_recipe
        batch = self.global_batch_size or (recipe.global_batch_size if recipe else None)
        if batch is None:
            return
        model = self.model_ranks or (recipe.model_ranks if recipe else 1)
        known = set(recipe.uneven) if recipe else set()
        for nodes in self.sizes:
            if nodes * gpus % model:
                yield (
                    f"{nodes} nodes have {nodes * gpus} GPUs, which copies of the model on {model} GPUs each do not "
                    f"fill; take a count of nodes whose GPUs are a multiple of {model}"
                )
                continue
            ranks = nodes * gpus // model
            uneven = self.uneven_batch.get(nodes)
            if uneven and uneven.samples(ranks) != batch:
                yield (
                    f"uneven_batch of {nodes} nodes gives {uneven.samples(ranks)} samples to {ranks} ranks, not the "
                    f"global_batch_size {batch}: small x groups + large x (ranks - groups) must be equal to it"
                )
            elif not uneven and batch % ranks and nodes not in known:
                yield (
                    f"global_batch_size {batch} cannot be divided by the {ranks} data-parallel ranks of {nodes} "
                    f"nodes; take a multiple of {ranks}, leave that size out, or set uneven_batch.{nodes}"
                )
        if strange := sorted(set(self.uneven_batch) - set(self.sizes)):
            named = ", ".join(map(str, strange))
            yield f"uneven_batch names {named} nodes, on which the job never runs; leave it out"

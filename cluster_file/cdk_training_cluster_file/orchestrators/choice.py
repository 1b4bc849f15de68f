"""Which orchestrator runs a cluster's jobs: one word, or one key with its settings."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cdk_training_cluster.cluster.orchestrator import NoOrchestrator, Orchestrator
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster_file.capacity import EMPTY
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.orchestrators.batch import BatchSettings
from cdk_training_cluster_file.orchestrators.eks import EksSettings
from cdk_training_cluster_file.orchestrators.hyperpod import HyperPodSettings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel
from cdk_training_cluster_file.orchestrators.slurm import SlurmSettings

NONE = "none"
"""The word for no orchestrator: Auto Scaling groups launch the nodes."""


class OrchestratorSettings(Settings):
    """One orchestrator that runs jobs, with its settings."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    slurm: SlurmSettings | None = None
    """Slurm on AWS PCS."""

    eks: EksSettings | None = None
    """Kubernetes on Amazon EKS."""

    hyperpod: HyperPodSettings | None = None
    """Amazon SageMaker HyperPod, on Slurm or on EKS."""

    batch: BatchSettings | None = None
    """AWS Batch, with multi-node parallel jobs."""

    @property
    def settings(self) -> OrchestratorModel | None:
        """The settings of the one orchestrator that is named. None: there is none."""
        return next((value for _, value in self if isinstance(value, OrchestratorModel)), None)

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it.

        Raises:
            SettingsError: The settings contradict each other; every reason, a line each.
        """
        return NoOrchestrator() if self.settings is None else self.settings.to_orchestrator()


ORCHESTRATORS = tuple(OrchestratorSettings.model_fields)
"""All orchestrators, as words and as keys of their settings."""


KINDS = {
    NONE: OrchestratorKind.NONE,
    "slurm": OrchestratorKind.SLURM,
    "eks": OrchestratorKind.EKS,
    "hyperpod": OrchestratorKind.HYPERPOD_SLURM,
    "batch": OrchestratorKind.BATCH,
}
"""What each word stands for."""


class _WordOrSettings:
    """Marks `OrchestratorSettings` that may be written as a word."""

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_one_orchestrator, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"enum": [NONE, *ORCHESTRATORS]}, handler(schema)]}


OrchestratorChoice = Annotated[OrchestratorSettings, _WordOrSettings()]


def _one_orchestrator(value: object) -> object:
    """Return the settings of one orchestrator, whichever way they are written."""
    if isinstance(value, OrchestratorSettings):
        return value
    if isinstance(value, str) and value in (NONE, *ORCHESTRATORS):
        return {} if value == NONE else {value: {}}
    if not isinstance(value, Mapping):
        near = get_close_matches(value, (NONE, *ORCHESTRATORS), n=1) if isinstance(value, str) else []
        raise PydanticCustomError(
            "form",
            "must be {words} or {last}, or one key with its settings, such as {example}",
            {
                "words": ", ".join((NONE, *ORCHESTRATORS[:-1])),
                "last": ORCHESTRATORS[-1],
                "example": "{hyperpod: {orchestrator: eks}}",
                "near": next(iter(near), ""),
            },
        )
    if len(value) != 1:
        named = " and ".join(map(str, value)) or "none"
        raise PydanticCustomError(
            "told", "must name one orchestrator, got {named}; make a cluster for each", {"named": named}
        )
    orchestrator, settings = next(iter(value.items()))
    if settings is None:
        raise PydanticCustomError(EMPTY, "{orchestrator} has no value", {"orchestrator": str(orchestrator)})
    return value

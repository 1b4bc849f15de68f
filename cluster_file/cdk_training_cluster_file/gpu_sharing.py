"""How several jobs share a GPU: `gpu_sharing:` of a node group in a cluster file."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cdk_training_cluster import GpuSharing
from cdk_training_cluster.instance_types.mig import PROFILE
from cdk_training_cluster.nodes.gpu_sharing import MPS_REPLICAS, TIME_SLICING_REPLICAS
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Count
from cdk_training_cluster_file.forms import Text, within
from cdk_training_cluster_file.model_base import Settings

_Profile = Annotated[str, Text(pattern=PROFILE.pattern, must="be a MIG profile, such as 1g.10gb", longest=20)]


def _told(sentence: str) -> PydanticCustomError:
    return PydanticCustomError("told", "{sentence}", {"sentence": sentence})


def _counts(value: object) -> object:
    """Return partitions as a mapping: one profile alone has no number, which means as many as fit."""
    if isinstance(value, Mapping) and None in value.values():
        raise _told("must say of each profile how many a GPU is to have, such as {3g.40gb: 1, 1g.10gb: 4}")
    return {value: None} if isinstance(value, str) else value


class _ProfileOrCounts:
    """Marks partitions that may be written as one profile, of which there are as many as fit."""

    def __get_pydantic_core_schema__(self, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_counts, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "pattern": f"^{PROFILE.pattern}$"}, handler(schema)]}


_Partitions = Annotated[dict[_Profile, Count | None], Field(min_length=1), _ProfileOrCounts()]


class GpuSharingSettings(Settings, ModelOf[GpuSharing]):
    """One way for several jobs to share a GPU."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    mig: _Partitions | None = Field(default=None, examples=["1g.10gb"])
    """Partitions of each GPU: a profile, as many as fit, or of each profile how many, such as {3g.40gb: 1,
    1g.10gb: 4}. No job spans partitions or nodes."""

    mps: Annotated[int, within(MPS_REPLICAS)] | None = Field(default=None, examples=[4])
    """How many jobs run on a GPU at the same time, each with an equal part of its memory: 2 to 48."""

    time_slicing: Annotated[int, within(TIME_SLICING_REPLICAS)] | None = Field(default=None, examples=[4])
    """How many jobs take turns on a GPU, at least 2. They share its memory without limits."""

    @model_validator(mode="before")
    @classmethod
    def _one_way(cls, value: object) -> object:
        if isinstance(value, Mapping) and len(value) != 1:
            raise _told("must name one of mig, mps and time_slicing, such as {mig: 1g.10gb}")
        return value

    def for_constructs(self, **_: object) -> GpuSharing:
        """Return the sharing as the constructs take it."""
        if self.mig is not None:
            profile, count = next(iter(self.mig.items()))
            counts = {name: number for name, number in self.mig.items() if number is not None}
            return GpuSharing.mig(profile if count is None else counts)
        if self.mps is not None:
            return GpuSharing.mps(self.mps)
        return GpuSharing.time_slicing(self.time_slicing or TIME_SLICING_REPLICAS.minimum)

"""The documented limits of what the library emits, and what breaks them."""

from cdk_training_cluster.validation.text_limit import TextLimit
from cdk_training_cluster.validation.texts import LIMITS, TAG_COUNT, cluster_name_problems, text_problems

__all__ = ["LIMITS", "TAG_COUNT", "TextLimit", "cluster_name_problems", "text_problems"]

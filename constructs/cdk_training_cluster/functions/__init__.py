"""How the library's Lambda functions are packaged and set up."""

from cdk_training_cluster.functions.assets import FunctionSource, function_source
from cdk_training_cluster.functions.cluster_function import ClusterFunction
from cdk_training_cluster.functions.powertools import POWERTOOLS_VERSION, powertools_layer

__all__ = [
    "POWERTOOLS_VERSION",
    "ClusterFunction",
    "FunctionSource",
    "function_source",
    "powertools_layer",
]

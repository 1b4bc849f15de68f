"""The HyperPod recipes that a job can name, with the facts that its rules need.

https://github.com/aws/sagemaker-hyperpod-recipes (recipes_collection/recipes, June 2026)
https://github.com/aws/sagemaker-hyperpod-checkpointless-training (examples/*/launch)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_ACCOUNTS = {
    "ap-northeast-1": "356859066553",
    "ap-south-1": "423350936952",
    "ap-southeast-1": "885852567298",
    "ap-southeast-2": "304708117039",
    "eu-central-1": "391061375763",
    "eu-north-1": "963403601044",
    "eu-west-1": "942446708630",
    "eu-west-2": "016839105697",
    "sa-east-1": "311136344257",
    "us-east-1": "327873000638",
    "us-east-2": "556809692997",
    "us-west-1": "827510180725",
    "us-west-2": "920498770698",
}
"""The account that holds AWS's images in each region.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-checkpointless-release-notes.html
"""

IMAGE_REGIONS = tuple(_ACCOUNTS)
"""The regions that have AWS's images for recipes."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Describes a recipe of AWS's.

    Attributes:
        instance_types: The types that the recipe names.
        nodes: How many nodes it is written for.
        global_batch_size: Samples of one optimizer step.
        model_ranks: GPUs that hold one copy of the model: its tensor, pipeline and context parallel sizes multiplied.
        sizes: Counts of nodes that it has settings for; empty: it is not elastic.
        uneven: Of those sizes, the ones whose ranks take batches of different sizes.
        image: Repository and tag.
        example: The folder and name of its program in the image; empty: the launcher's script runs it.
        environment: Environment variables that its launcher sets.
    """

    instance_types: tuple[str, ...]
    nodes: int
    global_batch_size: int
    model_ranks: int = 1
    sizes: tuple[int, ...] = ()
    uneven: tuple[int, ...] = ()
    image: str
    example: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def checkpointless(self) -> bool:
        """Whether it recovers from copies of the model in GPU memory."""
        return not self.sizes

    def image_in(self, region: str) -> str:
        """Return the image's address.

        Args:
            region: One of `IMAGE_REGIONS`.
        """
        return f"{_ACCOUNTS[region]}.dkr.ecr.{region}.amazonaws.com/{self.image}"


def _checkpointless(example: str, *, nodes: int, global_batch_size: int, model_ranks: int) -> Recipe:
    return Recipe(
        instance_types=("ml.p5.48xlarge", "ml.p5e.48xlarge"),
        nodes=nodes,
        global_batch_size=global_batch_size,
        model_ranks=model_ranks,
        image="hyperpod-checkpointless-training:v1.0.0",
        example=example,
        environment={"HPCT_USE_ROOTLESS": "1", "INPROCESS_RESTART": "1", "INPROCESS_RESTART_TIMEOUT": "1800"},
    )


def _elastic(*instance_types: str, sizes: tuple[int, ...], uneven: tuple[int, ...] = ()) -> Recipe:
    return Recipe(
        instance_types=instance_types,
        nodes=1,
        global_batch_size=128,
        sizes=sizes,
        uneven=uneven,
        image="hyperpod-recipes:llmft-v1.0.0",
        environment={
            "FI_PROVIDER": "efa",
            "HYPERPOD_SIGNAL_COORDINATION": "distributed",
            "NCCL_SOCKET_IFNAME": "^lo,docker0,veth_def_agent",
            "SCRIPT_ARGS": "--config-path=/config",
            "SCRIPT_PATH": "-m amzn_awsllm_fine_tuning.train_hp",
            "USE_HYPERPODRUN": "true",
        },
    )


RECIPES = {
    "fine-tuning/gpt_oss/checkpointless_gpt_oss_120b_full_fine_tuning": _checkpointless(
        "gpt_oss/gpt_oss_120b_full_finetune", nodes=16, global_batch_size=256, model_ranks=8
    ),
    "fine-tuning/gpt_oss/checkpointless_gpt_oss_120b_lora": _checkpointless(
        "gpt_oss/gpt_oss_120b_peft", nodes=2, global_batch_size=16, model_ranks=1
    ),
    "fine-tuning/gpt_oss/llmft_gpt_oss_120b_seq4k_gpu_sft_lora": _elastic(
        "ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p5en.48xlarge", sizes=(1, 2, 4, 8, 16)
    ),
    "fine-tuning/llama/checkpointless_llama3_70b_lora": _checkpointless(
        "llama3/llama3_70b_peft", nodes=2, global_batch_size=2, model_ranks=8
    ),
    "fine-tuning/llama/llmft_llama3_3_70b_instruct_seq4k_gpu_sft_lora": _elastic(
        "ml.p4de.24xlarge", "ml.p5.48xlarge", sizes=(1, 2, 4, 6, 8, 16), uneven=(6,)
    ),
    "training/llama/checkpointless_llama3_70b_pretrain": _checkpointless(
        "llama3/llama3_70b_pretrain", nodes=16, global_batch_size=512, model_ranks=32
    ),
}
"""Recipes by their path in AWS's repository."""

"""What a rule about a template is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from cdk_training_cluster.template_rules.template import Finding, Template

AUTO_SCALING_GUIDE = "https://docs.aws.amazon.com/autoscaling/ec2/userguide"
AUTO_SCALING_API = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference"
EC2_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
EC2_API = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference"
CLOUDFORMATION = "https://docs.aws.amazon.com/AWSCloudFormation/latest"


@dataclass(frozen=True, kw_only=True)
class TemplateRule:
    """One thing that AWS says about what launches nodes, to be found in a synthesized template.

    Attributes:
        id: The rule's name; a finding is acknowledged as `cdk-training-cluster::<id>`.
        source: Where AWS says so.
        description: What must be, in the words of the template.
        fix: How to mend it.
        find: Yields each place that breaks the rule. What only the deployment knows breaks none.
        severity: Whether a finding ends the synth, or is only told of. Default: - it ends the synth.
    """

    id: str
    source: str
    description: str
    fix: str
    find: Callable[[Template], Iterator[Finding]]
    severity: Literal["error", "warning"] = "error"

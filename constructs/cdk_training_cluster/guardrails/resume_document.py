"""The runbook by which people bring stopped node groups back."""

from collections.abc import Sequence

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.power import ClusterPower

# What a tag can hold, without what would end the text in the function's event.
_REASON = r"^[A-Za-z0-9 .,:/=+@_-]{1,256}$"


class ResumeDocument(Construct):
    """Make a Systems Manager runbook that starts node groups again through the power function.

    It has no role of its own: it does what the permissions of whoever starts it allow, which `grant_start()` gives.
    Without parameters it starts every node group. What the function answers, such as which nodes EC2 does not have,
    is the output of the runbook's one step.

    Resources: one `AWS::SSM::Document`. A change makes a new version of it, which is the default then.

    Attributes:
        document: The runbook.

    Sources: https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-action-lamb.html and
    https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-syntax-data-elements-parameters.html
    """

    def __init__(
        self, scope: Construct, id: str, *, cluster_name: str, node_groups: Sequence[str], power: ClusterPower
    ) -> None:
        """Make the runbook.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster that is told about in its descriptions.
            node_groups: The names of the node groups that can be started.
            power: Who starts them.
        """
        super().__init__(scope, id)
        self._power = power
        self.document = ssm.CfnDocument(
            self,
            "Resource",
            document_type="Automation",
            document_format="JSON",
            # To replace it would give it another name, and people another command.
            update_method="NewVersion",
            content={
                "schemaVersion": "0.3",
                "description": f"Starts node groups of the training cluster {cluster_name}",
                "parameters": {
                    "NodeGroups": {
                        "type": "StringList",
                        "description": "The node groups to start; all, if none is named.",
                        "allowedValues": list(node_groups),
                        "default": list(node_groups),
                    },
                    "Reason": {
                        "type": "String",
                        "description": "Why, for those who ask later.",
                        "allowedPattern": _REASON,
                        "default": "no reason given",
                    },
                },
                "mainSteps": [
                    {
                        "name": "Start",
                        "action": "aws:invokeLambdaFunction",
                        # Lambda refuses an invocation while a tick runs, since the function never runs twice at
                        # once; for the same reason no try runs beside an earlier one.
                        "maxAttempts": 5,
                        "timeoutSeconds": 120,
                        "isEnd": True,
                        "inputs": {
                            "FunctionName": power.function.function_name,
                            "InvocationType": "RequestResponse",
                            "InputPayload": {
                                "action": "start",
                                "node_groups": "{{ NodeGroups }}",
                                "by": "an operator through automation {{ automation:EXECUTION_ID }}",
                                "reason": "{{ Reason }}",
                            },
                        },
                    }
                ],
                "outputs": ["Start.Payload"],
            },
        )

    @property
    def command(self) -> str:
        """What people run to start every node group."""
        return (
            f"aws ssm start-automation-execution --document-name {self.document.ref} --region {Stack.of(self).region}"
        )

    def grant_start(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let somebody start node groups with the runbook and see what came of it.

        Args:
            grantee: A role, user or function.

        Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-setup-identity-based-policies.html
        """
        ours = f"arn:{Aws.PARTITION}:ssm:{Aws.REGION}:{Aws.ACCOUNT_ID}"
        started = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:StartAutomationExecution"],
            resource_arns=[f"{ours}:document/{self.document.ref}", f"{ours}:automation-execution/*"],
        )
        seen = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:GetAutomationExecution"],
            resource_arns=[f"{ours}:automation-execution/*"],
        )
        return started.combine(seen).combine(self._power.grant_power(grantee))

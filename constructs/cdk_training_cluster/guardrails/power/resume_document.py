"""The runbook with which an operator starts stopped node groups."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.guardrails.power import ClusterPower
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.aliases import Alias

# What a tag can hold, without what would end the text in the function's event.
_REASON = r"^[A-Za-z0-9 .,:/=+@_-]{1,256}$"

_EXECUTIONS = "automation-execution/*"


class ResumeDocument(Construct):
    """Make a Systems Manager runbook that starts node groups again through the power function.

    It runs under a role of its own, which may have the power function start node groups and do nothing else; the
    function asks Systems Manager who started the runbook. `grant_start()` lets a principal start it.
    Without parameters it starts every node group. It tries five times, for the function takes one request at a time;
    where all of them meet a run that goes on, run it again. What the function answers, such as which nodes EC2 does
    not have, is the output of the runbook's one step.

    Resources: one `AWS::SSM::Document`, and the `AWS::IAM::Role` that it runs under, with one policy. A change makes
    a new version of the document, which is the default then.

    Attributes:
        document: The runbook.
        role: What it runs under.

    Sources: https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-setup-iam.html,
    https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-action-lamb.html and
    https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-syntax-data-elements-parameters.html
    """

    @checked
    def __init__(
        self, scope: Construct, id: str, *, cluster_name: ClusterName, node_groups: Sequence[str], power: ClusterPower
    ) -> None:
        """Make the runbook.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster that the runbook's descriptions name.
            node_groups: The names of the node groups that can be started.
            power: The function that starts them.

        Raises:
            ValueError: `cluster_name` is no name of a cluster.
        """
        super().__init__(scope, id)
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/cross-service-confused-deputy-prevention.html
        self.role: iam.Role = iam.Role(
            self,
            "Role",
            description=f"The runbook that starts node groups of the training cluster {cluster_name}",
            assumed_by=iam.ServicePrincipal(
                "ssm.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": HERE.account_id},
                    "ArnLike": {"aws:SourceArn": HERE.arn("ssm", _EXECUTIONS)},
                },
            ),
        )
        power.grant_start(self.role)
        self.document: ssm.CfnDocument = ssm.CfnDocument(
            self,
            "Resource",
            document_type="Automation",
            document_format="JSON",
            # To replace it would give it another name, and operators another command.
            update_method="NewVersion",
            content={
                "schemaVersion": "0.3",
                "description": f"Starts node groups of the training cluster {cluster_name}",
                "assumeRole": self.role.role_arn,
                "parameters": {
                    "NodeGroups": {
                        "type": "StringList",
                        "description": "The node groups to start; all, if none is named.",
                        "allowedValues": list(node_groups),
                        "default": list(node_groups),
                    },
                    "Reason": {
                        "type": "String",
                        "description": "Why the node groups are started; the power function records it.",
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
                            "Qualifier": Alias.START.value,
                            "InvocationType": "RequestResponse",
                            "InputPayload": {
                                "action": "start",
                                "node_groups": "{{ NodeGroups }}",
                                "automation_execution_id": "{{ automation:EXECUTION_ID }}",
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
        """The command with which an operator starts every node group."""
        return (
            f"aws ssm start-automation-execution --document-name {self.document.ref} --region {Stack.of(self).region}"
        )

    def grant_start(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal start node groups with the runbook and see what came of it.

        Args:
            grantee: A role, user or function.

        Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/automation-setup-identity-based-policies.html
        """
        started = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:StartAutomationExecution"],
            resource_arns=[HERE.arn("ssm", f"document/{self.document.ref}"), HERE.arn("ssm", _EXECUTIONS)],
        )
        seen = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:GetAutomationExecution"],
            resource_arns=[HERE.arn("ssm", _EXECUTIONS)],
        )
        passed = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["iam:PassRole"],
            resource_arns=[self.role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "ssm.amazonaws.com"}},
        )
        return started.combine(seen).combine(passed)

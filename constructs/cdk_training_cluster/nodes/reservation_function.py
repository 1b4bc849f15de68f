"""The function that owns the Capacity Reservations of a stack that are made in placement groups."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Aws, CfnResource, CustomResource, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.acknowledgements import acknowledge, default_child, ignore_lint
from cdk_training_cluster.conditions import HERE, in_this_region
from cdk_training_cluster.encryption import KeyUser, allow
from cdk_training_cluster.functions.assets import function_source
from cluster_contract.tags import STACK_TAG

RESERVATION_TYPE = "Custom::CapacityReservation"
"""The type of a reservation that the function owns. Its properties are those of `AWS::EC2::CapacityReservation`."""

# No child of a construct whose children are node groups can have this id: names have no underscore.
_ID = "Reservation_Function"
_PACKAGE = "cluster_reservations"
_TIMEOUT = Duration.minutes(5)
# Lambda delivers a failed request twice more, after one minute and after two.
_SERVICE_TIMEOUT = Duration.minutes(25)


class ReservationFunction(Construct):
    """Make the function that creates, changes and cancels Capacity Reservations for CloudFormation.

    The schema of `AWS::EC2::CapacityReservation` has a pattern for `PlacementGroupArn` that no ARN matches, so that
    CloudFormation refuses every reservation in a placement group; EC2's API takes the ARN. The role may write on
    reservations of its own stack only.

    Resources: `AWS::Lambda::Function`, `AWS::Lambda::EventInvokeConfig`, `AWS::Logs::LogGroup`, and `AWS::IAM::Role`
    with one policy.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-capacityreservation.html
    """

    @staticmethod
    def of(scope: Construct, encryption_key: kms.IKey | None = None) -> "ReservationFunction":
        """Return the function of a scope; it is made where there is none.

        Args:
            scope: The construct that the node groups belong to.
            encryption_key: The KMS key that encrypts the log. Default: - a key that AWS owns.
        """
        found = scope.node.try_find_child(_ID)
        return found if isinstance(found, ReservationFunction) else ReservationFunction(scope, _ID, encryption_key)

    def __init__(self, scope: Construct, id: str, encryption_key: kms.IKey | None = None) -> None:
        """Make the function.

        Args:
            scope: The parent construct.
            id: The construct's id.
            encryption_key: The KMS key that encrypts the log and the environment. Default: - a key that AWS owns.
        """
        super().__init__(scope, id)
        if encryption_key is not None:
            allow(self, encryption_key, KeyUser.LOGS)
        log_group = logs.LogGroup(
            self,
            "Logs",
            retention=logs.RetentionDays.THREE_MONTHS,
            encryption_key=encryption_key,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role: iam.Role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Capacity Reservations in placement groups",
        )
        log_group.grant_write(self.role)
        self._permit()
        source = function_source(_PACKAGE)
        self.function: lambda_.Function = lambda_.Function(
            self,
            "Resource",
            description="Creates, changes and cancels Capacity Reservations in placement groups for CloudFormation",
            code=source.code(),
            handler=source.handler,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=256,
            timeout=_TIMEOUT,
            role=self.role,
            log_group=log_group,
            environment_encryption=encryption_key,
            retry_attempts=2,
            max_event_age=Duration.minutes(20),
        )
        # CDK names the role in DependsOn, though the reference to it says as much: cfn-lint W3005.
        ignore_lint(default_child(self.function), "W3005")

    def reserve(self, scope: Construct, id: str, properties: Mapping[str, Any]) -> CfnResource:
        """Make a reservation.

        Args:
            scope: The parent construct.
            id: The construct's id.
            properties: The properties of `AWS::EC2::CapacityReservation`.
        """
        made = CustomResource(
            scope,
            id,
            service_token=self.function.function_arn,
            service_timeout=_SERVICE_TIMEOUT,
            resource_type=RESERVATION_TYPE,
            properties=dict(properties),
        )
        # The role's policy is there before the first request, and until the last.
        made.node.add_dependency(self.role)
        return default_child(made)

    def _permit(self) -> None:
        """Allow what the function calls.

        Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
        """
        account = f"arn:{HERE.partition}:ec2:{HERE.region}:{HERE.account_id}"
        reservations, own = f"{account}:capacity-reservation/*", {STACK_TAG: Aws.STACK_NAME}
        statements = (
            iam.PolicyStatement(
                actions=["ec2:DescribeCapacityReservations"], resources=["*"], conditions=in_this_region()
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateCapacityReservation"],
                resources=[reservations],
                conditions={"StringEquals": {f"aws:RequestTag/{key}": value for key, value in own.items()}},
            ),
            # The document names no other resource of the action; EC2 may look at the placement group all the same.
            iam.PolicyStatement(
                actions=["ec2:CreateCapacityReservation"], resources=[f"{account}:placement-group/*"]
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateTags"],
                resources=[reservations],
                conditions={"StringEquals": {"ec2:CreateAction": "CreateCapacityReservation"}},
            ),
            iam.PolicyStatement(
                actions=["ec2:CancelCapacityReservation", "ec2:CreateTags", "ec2:ModifyCapacityReservation"],
                resources=[reservations],
                conditions={"StringEquals": {f"aws:ResourceTag/{key}": value for key, value in own.items()}},
            ),
        )
        for statement in statements:
            self.role.add_to_policy(statement)
        nag_says = "arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>"
        for resource in ("*", f"{nag_says}:capacity-reservation/*", f"{nag_says}:placement-group/*"):
            acknowledge(
                self.role,
                f"AwsSolutions-IAM5[Resource::{resource}]",
                "Ids are made at the deployment; the condition on the stack's tag limits the writes.",
            )

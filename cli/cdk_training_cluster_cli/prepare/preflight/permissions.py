"""Whether the deployer may do what the stacks need, as IAM's policy simulator sees it: no request changes a thing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cdk_training_cluster.orchestrators.hyperpod.caller_permissions import EKS_ACTIONS, IMAGE_ACTIONS, KEY_ACTIONS
from cdk_training_cluster_cli.prepare.preflight.checks import (
    Aws,
    Check,
    Outcome,
    Verdict,
    failed,
    found,
    passed,
    unknown,
)
from cdk_training_cluster_cli.prepare.preflight.needs import Needs
from cdk_training_cluster_file.fields import LATEST

# The create handlers' permissions, without reads, of
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-template-resource-type-ref.html
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "AWS::APS::RuleGroupsNamespace": ("aps:CreateRuleGroupsNamespace",),
    "AWS::APS::Workspace": ("aps:CreateWorkspace",),
    "AWS::AutoScaling::AutoScalingGroup": (
        "autoscaling:CreateAutoScalingGroup",
        "ec2:RunInstances",
        "iam:CreateServiceLinkedRole",
    ),
    "AWS::AutoScaling::LifecycleHook": ("autoscaling:PutLifecycleHook",),
    "AWS::AutoScaling::WarmPool": ("autoscaling:PutWarmPool",),
    "AWS::Batch::ComputeEnvironment": ("batch:CreateComputeEnvironment", "iam:CreateServiceLinkedRole"),
    "AWS::Batch::JobDefinition": ("batch:RegisterJobDefinition",),
    "AWS::Batch::JobQueue": ("batch:CreateJobQueue",),
    "AWS::Budgets::Budget": ("budgets:ModifyBudget",),
    "AWS::CloudFormation::CustomResource": ("lambda:InvokeFunction",),
    "AWS::CloudWatch::Alarm": ("cloudwatch:PutMetricAlarm",),
    "AWS::CloudWatch::Dashboard": ("cloudwatch:PutDashboard",),
    "AWS::DynamoDB::Table": ("dynamodb:CreateTable",),
    "AWS::EC2::CapacityReservation": ("ec2:CreateCapacityReservation",),
    "Custom::CapacityReservation": ("lambda:InvokeFunction",),
    "AWS::EC2::EIP": ("ec2:AllocateAddress",),
    "AWS::EC2::FlowLog": ("ec2:CreateFlowLogs",),
    "AWS::EC2::InternetGateway": ("ec2:CreateInternetGateway",),
    "AWS::EC2::LaunchTemplate": ("ec2:CreateLaunchTemplate",),
    "AWS::EC2::NatGateway": ("ec2:CreateNatGateway",),
    "AWS::EC2::PlacementGroup": ("ec2:CreatePlacementGroup",),
    "AWS::EC2::Route": ("ec2:CreateRoute",),
    "AWS::EC2::RouteTable": ("ec2:CreateRouteTable",),
    "AWS::EC2::SecurityGroup": ("ec2:CreateSecurityGroup",),
    "AWS::EC2::SecurityGroupEgress": ("ec2:AuthorizeSecurityGroupEgress",),
    "AWS::EC2::SecurityGroupIngress": ("ec2:AuthorizeSecurityGroupIngress",),
    "AWS::EC2::SpotFleet": ("ec2:RequestSpotFleet",),
    "AWS::EC2::Subnet": ("ec2:CreateSubnet",),
    "AWS::EC2::SubnetRouteTableAssociation": ("ec2:AssociateRouteTable",),
    "AWS::EC2::VPC": ("ec2:CreateVpc",),
    "AWS::EC2::VPCEndpoint": ("ec2:CreateVpcEndpoint",),
    "AWS::EC2::VPCGatewayAttachment": ("ec2:AttachInternetGateway",),
    "AWS::EKS::AccessEntry": ("eks:CreateAccessEntry", "eks:AssociateAccessPolicy"),
    "AWS::EKS::Addon": ("eks:CreateAddon",),
    "AWS::EKS::Cluster": ("eks:CreateCluster", "iam:CreateServiceLinkedRole"),
    "AWS::EKS::Nodegroup": ("eks:CreateNodegroup", "iam:CreateServiceLinkedRole"),
    "AWS::EKS::PodIdentityAssociation": ("eks:CreatePodIdentityAssociation",),
    "AWS::Events::Rule": ("events:PutRule", "events:PutTargets"),
    "AWS::FSx::DataRepositoryAssociation": ("fsx:CreateDataRepositoryAssociation",),
    "AWS::FSx::FileSystem": ("fsx:CreateFileSystem", "iam:CreateServiceLinkedRole"),
    "AWS::IAM::InstanceProfile": ("iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile"),
    "AWS::IAM::Policy": ("iam:PutRolePolicy",),
    "AWS::IAM::Role": ("iam:CreateRole", "iam:PassRole"),
    "AWS::Lambda::Alias": ("lambda:CreateAlias",),
    "AWS::Lambda::EventInvokeConfig": ("lambda:PutFunctionEventInvokeConfig",),
    "AWS::Lambda::Permission": ("lambda:AddPermission",),
    "AWS::Lambda::Function": ("lambda:CreateFunction", "lambda:PutFunctionConcurrency"),
    "AWS::Logs::Delivery": ("logs:CreateDelivery",),
    "AWS::Logs::DeliveryDestination": ("logs:PutDeliveryDestination",),
    "AWS::Logs::DeliverySource": ("logs:PutDeliverySource",),
    "AWS::Logs::LogGroup": ("logs:CreateLogGroup", "logs:PutRetentionPolicy"),
    "AWS::PCS::Cluster": ("pcs:CreateCluster", "iam:CreateServiceLinkedRole"),
    "AWS::PCS::ComputeNodeGroup": ("pcs:CreateComputeNodeGroup", "ec2:RunInstances", "ec2:CreateFleet"),
    "AWS::PCS::Queue": ("pcs:CreateQueue",),
    "AWS::ResourceGroups::Group": ("resource-groups:CreateGroup",),
    "AWS::S3::Bucket": ("s3:CreateBucket",),
    "AWS::S3::BucketPolicy": ("s3:PutBucketPolicy",),
    "AWS::S3Express::BucketPolicy": ("s3express:PutBucketPolicy",),
    "AWS::S3Express::DirectoryBucket": ("s3express:CreateBucket",),
    "AWS::SNS::Subscription": ("sns:Subscribe",),
    "AWS::SNS::Topic": ("sns:CreateTopic",),
    "AWS::SNS::TopicPolicy": ("sns:SetTopicAttributes",),
    "AWS::SQS::Queue": ("sqs:CreateQueue",),
    "AWS::SQS::QueuePolicy": ("sqs:SetQueueAttributes",),
    "AWS::SSM::Document": ("ssm:CreateDocument",),
    "AWS::SSM::Parameter": ("ssm:PutParameter",),
    "AWS::SageMaker::Cluster": ("sagemaker:CreateCluster", "iam:CreateServiceLinkedRole"),
    "AWS::SageMaker::ClusterSchedulerConfig": ("sagemaker:CreateClusterSchedulerConfig",),
    "AWS::Scheduler::Schedule": ("scheduler:CreateSchedule",),
}
"""What CloudFormation calls to make a resource of each type."""

# A caller that may not assume the CDK's roles deploys with its own permissions:
# https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_OWN = ("cloudformation:CreateChangeSet", "cloudformation:ExecuteChangeSet", "s3:PutObject", "iam:PassRole")
_ROLES = ("deploy-role", "file-publishing-role")
_ALLOWED = "allowed"


def actions_for(needs: Needs) -> tuple[str, ...]:
    """Return the actions that CloudFormation needs to make both stacks, sorted.

    Args:
        needs: What the cluster needs.
    """
    kinds = {*needs.foundation, *needs.nodes}
    return tuple(sorted({*(action for kind in kinds for action in ACTIONS.get(kind, ())), *_hyperpod(needs)}))


def _hyperpod(needs: Needs) -> Iterator[str]:
    """Yield what SageMaker does with the credentials of whoever makes a HyperPod cluster."""
    hyperpod = needs.cluster.orchestrator.hyperpod
    if hyperpod is None:
        return
    if hyperpod.orchestrator == "eks":
        yield from EKS_ACTIONS
    if needs.cluster.encryption_key is not None:
        yield from KEY_ACTIONS
    if any(group.image != LATEST for group in needs.cluster.node_groups):
        yield from IMAGE_ACTIONS


def judge_simulation(who: str, results: Sequence[Mapping[str, Any]] | None) -> Verdict:
    """Say whether a principal may do what was simulated.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_EvaluationResult.html

    Args:
        who: The principal, as people know it.
        results: What IAM's policy simulator says of each action. None: there is no such principal.
    """
    if results is None:
        return unknown(f"{who} does not exist yet", "bootstrap the CDK first")
    denied = [each for each in results if each["EvalDecision"] != _ALLOWED]
    if not denied:
        return passed(f"{who} may do all {len(results)} actions, as IAM simulates them")
    names = ", ".join(sorted(each["EvalActionName"] for each in denied))
    mend = f"allow {who}: {names}"
    # A policy may allow an action on some resources, or under conditions, which a simulation of `*` does not name.
    if all(each["EvalDecision"] == "implicitDeny" for each in denied):
        return unknown(
            f"policies allow {who} {names} on some resources or under conditions only, or not at all", mend
        )
    return failed(f"{who} is denied {names}, as IAM simulates it", mend)


def judge_caller(answer: tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None) -> Verdict:
    """Say whether the caller can deploy: through the CDK's roles, or else with permissions of its own.

    Args:
        answer: What IAM simulates of assuming the roles, and of deploying without. None: it is the root user.
    """
    if answer is None:
        return passed("the account's root user may deploy")
    roles, own = answer
    if all(each["EvalDecision"] == _ALLOWED for each in roles):
        return passed("the caller may assume the CDK's roles, as IAM simulates it")
    without = judge_simulation("the caller, which may not assume the CDK's roles,", own)
    if without.outcome is Outcome.PASS:
        return passed("the caller may not assume the CDK's roles, and may deploy with permissions of its own")
    return replace(without, mend="allow the caller: sts:AssumeRole of the roles cdk-hnb659fds-*")


def permission_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of the caller and of the role that CloudFormation deploys with.

    Args:
        needs: What the cluster needs.
    """
    yield Check(name="permissions of the caller", ask=_caller, judge=judge_caller)
    yield Check(
        name="permissions of the deploying role",
        ask=partial(_executor, actions_for(needs)),
        judge=partial(judge_simulation, "the role cfn-exec-role of the CDK"),
    )


def _role_arn(aws: Aws, name: str) -> str:
    return f"arn:{aws.partition}:iam::{aws.account}:role/cdk-hnb659fds-{name}-{aws.account}-{aws.region}"


def _simulated(
    aws: Aws, principal: str, actions: Sequence[str], resources: Sequence[str] = ("*",)
) -> list[Mapping[str, Any]]:
    # https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
    pages = aws.client("iam").get_paginator("simulate_principal_policy")
    answers = pages.paginate(PolicySourceArn=principal, ActionNames=list(actions), ResourceArns=list(resources))
    return list(answers.search("EvaluationResults[]"))


def _caller(aws: Aws) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None:
    if aws.caller.endswith(":root"):
        return None
    principal = _principal(aws)
    roles = [_role_arn(aws, name) for name in _ROLES]
    assuming = [each for role in roles for each in _simulated(aws, principal, ["sts:AssumeRole"], [role])]
    return assuming, _simulated(aws, principal, _OWN)


def _principal(aws: Aws) -> str:
    """Return the ARN of the user or role behind the caller's session; a role's path is known to IAM alone."""
    session = re.fullmatch(r"arn:[^:]+:sts::\d+:assumed-role/([^/]+)/.+", aws.caller)
    if session is None:
        return aws.caller
    return str(aws.client("iam").get_role(RoleName=session[1])["Role"]["Arn"])


def _executor(actions: Sequence[str], aws: Aws) -> Sequence[Mapping[str, Any]] | None:
    answer: Sequence[Mapping[str, Any]] | None = found(
        partial(_simulated, aws, _role_arn(aws, "cfn-exec-role"), actions), "NoSuchEntity"
    )
    return answer

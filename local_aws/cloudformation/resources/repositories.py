"""Image repositories and parameters: the rest of what the CDK's bootstrap stack needs."""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Handler
from local_aws.cloudformation.resources.regular import Regular

_PARAMETER = "AllowedPattern DataType Description Tier Type Value"

HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::ECR::Repository",
        service="ecr",
        create_with=Action("create_repository", "ImageTagMutability"),
        settings=(
            Action(
                "put_lifecycle_policy", "LifecyclePolicy.LifecyclePolicyText:lifecyclePolicyText", id="repositoryName"
            ),
            Action("set_repository_policy", "RepositoryPolicyText:policyText", id="repositoryName"),
        ),
        delete_with=Action("delete_repository", id="repositoryName"),
        named="RepositoryName:repositoryName",
        name_limit=256,
        made="repository",
        attributes={"Arn": "repositoryArn", "RepositoryUri": "repositoryUri"},
        can_tag=False,
    ),
    Regular(
        type="AWS::SSM::Parameter",
        service="ssm",
        create_with=Action("put_parameter", _PARAMETER),
        updates=(Action("put_parameter", _PARAMETER, id="Name", also={"Overwrite": True}, whole=True),),
        delete_with=Action("delete_parameter", id="Name"),
        named="Name:Name",
        tag_also={"ResourceType": "Parameter"},
    ),
)

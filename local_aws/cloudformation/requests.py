"""What CloudFormation's requests mean: their stacks, plans and pages, whichever action they ask for."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar
from uuid import uuid4

from moto.cloudformation.utils import get_stack_from_s3_url
from moto.core.responses import ActionResult, BaseResponse

from local_aws import sessions
from local_aws.cloudformation.deployment import Deployment
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.plans import Plan, make_plan
from local_aws.cloudformation.stacks import REGIONS, ChangeSet, Region, Stack
from local_aws.refusal import Refusal
from local_aws.services.answers import page

_UPDATABLE = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"})
_PAGE = 100


class CloudFormationRequest(BaseResponse):  # type: ignore[misc] # moto's modules are untyped here
    """One request to CloudFormation, whose actions the subclasses answer."""

    endpoint_url: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__(service_name="cloudformation")
        self.automated_parameter_parsing = True

    @property
    def _here(self) -> Region:
        return REGIONS[self.current_account, self.region]

    def _client(self) -> Callable[[str], Any]:
        endpoint_url, region = self.endpoint_url, self.region
        return lambda service: _client(service, endpoint_url, region)

    def _existing(self) -> Stack:
        return self._here.get(self._get_param("StackName"))

    def _pseudo(self, stack: Stack) -> dict[str, Any]:
        return {
            "AWS::AccountId": self.current_account,
            "AWS::NotificationARNs": stack.notification_arns,
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::StackId": stack.id,
            "AWS::StackName": stack.name,
            "AWS::URLSuffix": "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com",
        }

    def _deployment(self, stack: Stack) -> Deployment:
        return Deployment(self._here, stack, client=self._client(), pseudo=self._pseudo(stack))

    def _new_stack(self, name: str) -> Stack:
        stack_id = f"arn:{self.partition}:cloudformation:{self.region}:{self.current_account}:stack/{name}/{uuid4()}"
        stack = Stack(name, stack_id, "", {}, {}, {}, {})
        stack.termination_protection = self._get_bool_param("EnableTerminationProtection", False)
        self._configure(stack)
        return stack

    def _configure(self, stack: Stack) -> None:
        stack.role_arn = self._get_param("RoleARN", stack.role_arn)
        stack.notification_arns = self._get_param("NotificationARNs", stack.notification_arns)
        stack.capabilities = self._get_param("Capabilities", stack.capabilities)
        stack.disable_rollback = (
            self._get_bool_param("DisableRollback", False) or self._get_param("OnFailure") == "DO_NOTHING"
        )

    def _template_text(self, stack: Stack | None) -> str:
        if stack is not None and self._get_bool_param("UsePreviousTemplate", False):
            return stack.template_text
        url = self._get_param("TemplateURL")
        account, partition = self.current_account, self.partition
        text = get_stack_from_s3_url(url, account, partition) if url else self._get_param("TemplateBody")
        if not text:
            raise ValidationError("Either Template URL or Template Body must be specified.")
        return str(text)

    def _plan(self, stack: Stack) -> Plan:
        given: dict[str, str] = {}
        for parameter in self._get_param("Parameters", []):
            key = parameter["ParameterKey"]
            if parameter.get("UsePreviousValue"):
                if key in stack.parameters:
                    given[key] = stack.parameters[key]
            else:
                given[key] = parameter.get("ParameterValue", "")
        tags = {tag["Key"]: tag["Value"] for tag in self._get_param("Tags", [])}
        return make_plan(self._template_text(stack), given, tags, client=self._client(), pseudo=self._pseudo(stack))

    def _check_updatable(self, stack: Stack) -> None:
        if stack.status not in _UPDATABLE:
            raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")

    def _check_types(self, stack: Stack, plan: Plan) -> None:
        moved = [
            logical_id
            for logical_id in plan.order
            if logical_id in stack.resources
            and stack.resources[logical_id].type != plan.definition(logical_id)["Type"]
        ]
        if moved:
            raise ValidationError(
                "Update of resource type is not permitted. The new template modifies resource type of the following "
                f"resources: [{', '.join(moved)}]"
            )

    def _check_capabilities(self, plan: Plan) -> None:
        """Refuse IAM resources that the request does not acknowledge.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
        """
        given = set(self._get_param("Capabilities", []))
        definitions = [plan.definition(logical_id) for logical_id in plan.order]
        identities = [d for d in definitions if d["Type"].startswith("AWS::IAM::")]
        named = any(
            name in (definition.get("Properties") or {})
            for definition in identities
            for name in ("RoleName", "ManagedPolicyName", "InstanceProfileName")
        )
        needed = "CAPABILITY_NAMED_IAM" if named else "CAPABILITY_IAM"
        if identities and not given & {needed, "CAPABILITY_NAMED_IAM"}:
            raise Refusal("InsufficientCapabilitiesException", f"Requires capabilities : [{needed}]")

    def _find_change_set(self) -> ChangeSet | None:
        name, stack = self._get_param("ChangeSetName"), self._get_param("StackName")
        found = [
            change_set
            for change_set in self._here.change_sets.values()
            if change_set.id == name
            or (change_set.name == name and stack in {None, change_set.stack.name, change_set.stack.id})
        ]
        return found[-1] if found else None

    def _change_set(self) -> ChangeSet:
        change_set = self._find_change_set()
        if change_set is None:
            name = self._get_param("ChangeSetName")
            raise Refusal("ChangeSetNotFound", f"ChangeSet [{name}] does not exist")
        return change_set

    def _page(self, key: str, items: list[Any]) -> ActionResult:
        some, token = page(items, self._get_param("NextToken"), _PAGE)
        return ActionResult({key: some, **({"NextToken": token} if token else {})})


@lru_cache
def _client(service: str, endpoint_url: str, region: str) -> Any:
    return sessions.client(service, endpoint_url, region)

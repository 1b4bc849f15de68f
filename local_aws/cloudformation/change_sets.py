"""CloudFormation's change sets: a plan made first and carried out later."""

from uuid import uuid4

from moto.core.responses import ActionResult, EmptyResult

from local_aws.cloudformation.changes import changes_between
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.plans import Plan
from local_aws.cloudformation.requests import CloudFormationRequest
from local_aws.cloudformation.stacks import ChangeSet
from local_aws.refusal import Refusal

_NO_CHANGES = "The submitted information didn't contain changes. Submit different information to create a change set."


class ChangeSetActions(CloudFormationRequest):
    """The actions on change sets."""

    def create_change_set(self) -> ActionResult:
        """Carry out CreateChangeSet: the plan is made now, and made again when it is executed."""
        name, kind = self._get_param("StackName"), self._get_param("ChangeSetType") or "UPDATE"
        if kind not in {"CREATE", "UPDATE"}:
            raise ValidationError(f"the local AWS has no change sets of type {kind}")
        with self._here.lock:
            stack = self._here.find(name)
            if kind == "CREATE" and (stack is None or stack.status == "DELETE_COMPLETE"):
                stack = self._new_stack(name)
                self._here.stacks[stack.id] = stack
                stack.say("REVIEW_IN_PROGRESS", "User Initiated")
            if stack is None:
                raise ValidationError(f"Stack [{name}] does not exist")
            if kind == "UPDATE":
                self._check_updatable(stack)
            elif stack.status != "REVIEW_IN_PROGRESS":
                raise ValidationError(f"Stack [{name}] already exists and cannot be created again")
            plan = self._plan(stack)
            self._check_capabilities(plan)
            change_set_name = self._get_param("ChangeSetName")
            change_set = ChangeSet(
                change_set_name,
                f"arn:{self.partition}:cloudformation:{self.region}:{self.current_account}:changeSet/{change_set_name}/{uuid4()}",
                stack,
                kind,
                {"plan": plan, "params": dict(self._get_params())},
                changes_between(stack, plan),
            )
            if kind == "UPDATE" and plan.changes_nothing_of(stack):
                change_set.status, change_set.execution = "FAILED", "UNAVAILABLE"
                change_set.reason = _NO_CHANGES
            self._here.change_sets[change_set.id] = change_set
        return ActionResult({"Id": change_set.id, "StackId": stack.id})

    def describe_change_set(self) -> ActionResult:
        """Carry out DescribeChangeSet."""
        change_set = self._change_set()
        plan: Plan = change_set.request["plan"]
        return ActionResult(
            {
                "ChangeSetName": change_set.name,
                "ChangeSetId": change_set.id,
                "StackId": change_set.stack.id,
                "StackName": change_set.stack.name,
                "Description": change_set.request["params"].get("Description"),
                "CreationTime": change_set.created,
                "ExecutionStatus": change_set.execution,
                "Status": change_set.status,
                "StatusReason": change_set.reason,
                "Tags": [{"Key": key, "Value": value} for key, value in plan.tags.items()],
                "Changes": change_set.changes,
            }
        )

    def execute_change_set(self) -> ActionResult:
        """Carry out ExecuteChangeSet."""
        with self._here.lock:
            change_set = self._change_set()
            if change_set.execution != "AVAILABLE":
                raise Refusal(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]",
                )
            stack, plan = change_set.stack, change_set.request["plan"]
            stack.disable_rollback = self._get_bool_param("DisableRollback", False)
            change_set.execution = "EXECUTE_COMPLETE"
            if change_set.kind == "CREATE":
                self._deployment(stack).create(plan)
            else:
                self._check_types(stack, plan)
                self._deployment(stack).update(plan)
        return EmptyResult()

    def delete_change_set(self) -> ActionResult:
        """Carry out DeleteChangeSet; one that does not exist is deleted already."""
        change_set = self._find_change_set()
        if change_set is not None:
            del self._here.change_sets[change_set.id]
        return EmptyResult()

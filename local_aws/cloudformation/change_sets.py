"""CloudFormation's change sets: a plan made first and executed later."""

from uuid import uuid4

from moto.core.responses import ActionResult, EmptyResult

from local_aws.cloudformation import imports
from local_aws.cloudformation.failures import ValidationError
from local_aws.cloudformation.requests import CloudFormationRequest
from local_aws.cloudformation.stacks import ChangeSet
from local_aws.refusal import Refusal


class ChangeSetActions(CloudFormationRequest):
    """The actions on change sets."""

    def create_change_set(self) -> ActionResult:
        """Answer CreateChangeSet: of a new stack, as the CDK CLI bootstraps, or of an import into any stack."""
        name, kind = self._get_param("StackName"), self._get_param("ChangeSetType")
        if kind not in {"CREATE", "IMPORT"}:
            raise ValidationError(f"the local AWS has no change sets of type {kind or 'UPDATE'}")
        with self._here.lock:
            stack = self._here.find(name)
            if stack is None or stack.status == "DELETE_COMPLETE":
                stack = self._new_stack(name)
                stack.say("REVIEW_IN_PROGRESS", "User Initiated")
            elif kind == "IMPORT" and stack.status != "REVIEW_IN_PROGRESS":
                self._check_updatable(stack)
            elif stack.status != "REVIEW_IN_PROGRESS":
                raise ValidationError(f"Stack [{name}] already exists and cannot be created again")
            plan = self._plan(stack)
            self._check_capabilities(plan)
            wanted = self._get_param("ResourcesToImport", [])
            imported = imports.found(self._here, stack, plan, wanted) if kind == "IMPORT" else {}
            self._here.stacks[stack.id] = stack
            change_set_name = self._get_param("ChangeSetName")
            change_set = ChangeSet(
                change_set_name,
                f"arn:{self.partition}:cloudformation:{self.region}:{self.current_account}:changeSet/{change_set_name}/{uuid4()}",
                stack,
                plan,
                imported,
            )
            self._here.change_sets[change_set.id] = change_set
        return ActionResult({"Id": change_set.id, "StackId": stack.id})

    def describe_change_set(self) -> ActionResult:
        """Answer DescribeChangeSet."""
        change_set = self._change_set()
        return ActionResult(
            {
                "ChangeSetName": change_set.name,
                "ChangeSetId": change_set.id,
                "StackId": change_set.stack.id,
                "StackName": change_set.stack.name,
                "CreationTime": change_set.created,
                "ExecutionStatus": change_set.execution,
                "Status": "CREATE_COMPLETE",
                "Changes": [
                    {
                        "Type": "Resource",
                        "ResourceChange": {
                            "Action": "Import",
                            "LogicalResourceId": name,
                            "PhysicalResourceId": kept.physical_id,
                            "ResourceType": kept.type,
                        },
                    }
                    for name, kept in change_set.imported.items()
                ],
            }
        )

    def execute_change_set(self) -> ActionResult:
        """Answer ExecuteChangeSet."""
        with self._here.lock:
            change_set = self._change_set()
            if change_set.execution != "AVAILABLE":
                raise Refusal(
                    "InvalidChangeSetStatus",
                    f"ChangeSet [{change_set.id}] cannot be executed in its current status of [CREATE_COMPLETE]",
                )
            change_set.stack.disable_rollback = self._get_bool_param("DisableRollback", False)
            change_set.execution = "EXECUTE_COMPLETE"
            deployment = self._deployment(change_set.stack)
            if change_set.imported:
                deployment.take_over(change_set.plan, change_set.imported)
            else:
                deployment.create(change_set.plan)
        return EmptyResult()

    def delete_change_set(self) -> ActionResult:
        """Answer DeleteChangeSet; one that does not exist is deleted already."""
        change_set = self._find_change_set()
        if change_set is not None:
            del self._here.change_sets[change_set.id]
        return EmptyResult()

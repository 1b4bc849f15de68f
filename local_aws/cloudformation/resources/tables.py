"""DynamoDB tables.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
"""

from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Handler, Properties, picked
from local_aws.cloudformation.resources.regular import Regular

_CHANGEABLE = "DeletionProtectionEnabled _Encryption:SSESpecification"


def _in_words_of_dynamodb(_: Call, properties: Properties) -> Properties:
    """Refuse attributes that are no keys, which moto takes, and say how a table is encrypted as DynamoDB does."""
    keys = {key["AttributeName"] for key in properties["KeySchema"]}
    spare = sorted({one["AttributeName"] for one in properties.get("AttributeDefinitions", [])} - keys)
    if spare:
        raise HandlerError(
            f"One or more parameter values were invalid: Some AttributeDefinitions are not used: {', '.join(spare)}"
        )
    given = properties.get("SSESpecification", {})
    encryption: dict[str, Any] = {"Enabled": given.get("SSEEnabled", False)}
    words = {**properties, "_Encryption": encryption | picked(given, "SSEType", "KMSMasterKeyId")}
    words.pop("SSESpecification", None)
    return words


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::DynamoDB::Table",
        service="dynamodb",
        create_with=Action("create_table", f"AttributeDefinitions BillingMode KeySchema {_CHANGEABLE}"),
        settings=(
            Action("update_time_to_live", "TimeToLiveSpecification", id="TableName"),
            Action("update_continuous_backups", "PointInTimeRecoverySpecification", id="TableName"),
        ),
        updates=(Action("update_table", _CHANGEABLE, id="TableName", absent={"DeletionProtectionEnabled": False}),),
        delete_with=Action("delete_table", id="TableName"),
        named="TableName:TableName",
        made="TableDescription",
        attributes={"Arn": "TableArn"},
        tag_by="Arn",
        prepare=_in_words_of_dynamodb,
        also_supported=frozenset({"SSESpecification"}),
    ),
)

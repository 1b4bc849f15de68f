"""The delivery of services' logs.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
"""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Regular


def _configured(_: Call, properties: Properties) -> Properties:
    return {**properties, "_Configuration": {"destinationResourceArn": properties["DestinationResourceArn"]}}


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::Logs::DeliverySource",
        service="logs",
        create_with=Action("put_delivery_source", "LogType ResourceArn"),
        delete_with=Action("delete_delivery_source", id="name"),
        named="Name:name",
        made="deliverySource",
        attributes={"Arn": "arn"},
        tag_by="Arn",
    ),
    Regular(
        type="AWS::Logs::DeliveryDestination",
        service="logs",
        create_with=Action("put_delivery_destination", "_Configuration:deliveryDestinationConfiguration"),
        delete_with=Action("delete_delivery_destination", id="name"),
        named="Name:name",
        made="deliveryDestination",
        attributes={"Arn": "arn"},
        tag_by="Arn",
        also_supported=frozenset({"DestinationResourceArn"}),
        prepare=_configured,
    ),
    Regular(
        type="AWS::Logs::Delivery",
        service="logs",
        create_with=Action("create_delivery", "DeliveryDestinationArn DeliverySourceName"),
        delete_with=Action("delete_delivery", id="id"),
        made="delivery",
        id="id",
        attributes={"Arn": "arn", "DeliveryId": "id"},
        tag_by="Arn",
    ),
)

"""The delivery of services' logs.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
"""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Regular


def _configured(_: Call, properties: Properties) -> Properties:
    return {**properties, "_Configuration": {"destinationResourceArn": properties["DestinationResourceArn"]}}


class _Delivery(Regular):
    """A delivery, which changes its source and what it delivers to.

    Of deliveries that are made at the same time, CloudWatch refuses one whose source or destination is that of
    another: https://github.com/hashicorp/terraform-provider-aws/issues/42194. Whether a log group behind two
    destinations counts, no document says.
    """

    def touches(self, call: Call, properties: Properties) -> frozenset[str]:
        """Return the source, and what is behind the destination."""
        name = properties["DeliveryDestinationArn"].rpartition(":")[2]
        found = call.client("logs").get_delivery_destination(name=name)["deliveryDestination"]
        behind = found["deliveryDestinationConfiguration"]["destinationResourceArn"].removesuffix(":*")
        return frozenset({properties["DeliverySourceName"], behind})


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
    _Delivery(
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

"""The delivery of services' logs.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
"""

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, if_there, tags_of
from local_aws.cloudformation.resources.tags import retag


class _Source(Handler):
    type = "AWS::Logs::DeliverySource"
    carries_out = frozenset({"LogType", "Name", "ResourceArn", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        made = call.client("logs").put_delivery_source(
            name=properties["Name"],
            resourceArn=properties["ResourceArn"],
            logType=properties["LogType"],
            tags=tags_of(properties),
        )["deliverySource"]
        call.made(properties["Name"])
        return {"Arn": made["arn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Tags")
        retag(call, "logs", properties, before, call.attributes["Arn"])
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("logs").delete_delivery_source, name=call.physical_id)


class _Destination(Handler):
    type = "AWS::Logs::DeliveryDestination"
    carries_out = frozenset({"DestinationResourceArn", "Name", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        made = call.client("logs").put_delivery_destination(
            name=properties["Name"],
            deliveryDestinationConfiguration={"destinationResourceArn": properties["DestinationResourceArn"]},
            tags=tags_of(properties),
        )["deliveryDestination"]
        call.made(properties["Name"])
        return {"Arn": made["arn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Tags")
        retag(call, "logs", properties, before, call.attributes["Arn"])
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("logs").delete_delivery_destination, name=call.physical_id)


class _Delivery(Handler):
    type = "AWS::Logs::Delivery"
    carries_out = frozenset({"DeliveryDestinationArn", "DeliverySourceName", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        made = call.client("logs").create_delivery(
            deliverySourceName=properties["DeliverySourceName"],
            deliveryDestinationArn=properties["DeliveryDestinationArn"],
            tags=tags_of(properties),
        )["delivery"]
        call.made(made["id"])
        return {"Arn": made["arn"], "DeliveryId": made["id"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Tags")
        retag(call, "logs", properties, before, call.attributes["Arn"])
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("logs").delete_delivery, id=call.physical_id)


HANDLERS: tuple[Handler, ...] = (_Source(), _Destination(), _Delivery())

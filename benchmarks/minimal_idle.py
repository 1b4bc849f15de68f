"""A minimal script that stops idle instances, as anyone would write it: what the idle stop is measured beside.

It makes the same calls as the function does to find and stop what is idle, in pages and batches of the same size. It
has no safety: it takes any points for evidence, whoever owns an instance, reads nothing again, sends no message, and
ends at the first error.
"""

import os
from datetime import UTC, datetime, timedelta

import boto3

_TAG = "cdk-training-cluster:cluster"
_IDLE = 5
_PAGE, _QUERIES, _BATCH = 200, 500, 50


def main() -> None:
    """Stop what has been idle for an hour and was to be stopped by now."""
    ec2, cloudwatch = boto3.client("ec2"), boto3.client("cloudwatch")
    now = datetime.now(UTC)
    filters = [
        {"Name": f"tag:{_TAG}", "Values": [os.environ["CLUSTER"]]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=filters,  # type: ignore[arg-type] # the stubs want the dictionaries typed where they are made
        PaginationConfig={"PageSize": _PAGE},
    )
    ids = [
        instance["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]
    items = boto3.client("dynamodb").query(
        TableName=os.environ["STATE_TABLE"],
        KeyConditionExpression="part = :part",
        ExpressionAttributeValues={":part": {"S": f"idle#{os.environ['CLUSTER']}"}},
    )["Items"]
    stop_at = {item["name"]["S"]: item["stop_at"]["S"] for item in items}
    idle = list[str]()
    for start in range(0, len(ids), _QUERIES):
        some = ids[start : start + _QUERIES]
        answer = cloudwatch.get_metric_data(
            MetricDataQueries=[
                {
                    "Id": f"m{number}",
                    "MetricStat": {
                        "Metric": {
                            "Namespace": f"CdkTrainingCluster/Nodes/{os.environ['CLUSTER']}",
                            "MetricName": "nvidia_smi_utilization_gpu",
                            "Dimensions": [{"Name": "InstanceId", "Value": instance}],
                        },
                        "Period": 300,
                        "Stat": "Maximum",
                    },
                }
                for number, instance in enumerate(some)
            ],
            StartTime=now - timedelta(hours=1),
            EndTime=now,
        )
        values = {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}
        idle += [
            each for number, each in enumerate(some) if values[f"m{number}"] and max(values[f"m{number}"]) < _IDLE
        ]
    due = [each for each in idle if (time := stop_at.get(each)) and datetime.fromisoformat(time) <= now]
    for start in range(0, len(due), _BATCH):
        ec2.stop_instances(InstanceIds=due[start : start + _BATCH])


if __name__ == "__main__":
    main()

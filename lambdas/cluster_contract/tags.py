"""The tags by which operators and functions find the parts of a cluster, and by which operators keep nodes running.

They are never put on placement groups: `Tags` of `AWS::EC2::PlacementGroup` is create-only, so a tag that
changes would replace the group under its running instances.
"""

CLUSTER_TAG = "cdk-training-cluster:cluster"
"""On everything an operator or a function must find; the value is the cluster's name."""

NODE_GROUP_TAG = "cdk-training-cluster:node-group"
"""On what belongs to one node group; the value is the group's name."""

COUNT_TAG = "cdk-training-cluster:count"
"""On a PCS compute node group: the count of its template. A deployment that changes the count changes the functions'
settings later."""

STACK_ID_TAG = "aws:cloudformation:stack-id"
"""On an Auto Scaling group that CloudFormation made: the id of its stack. AWS refuses keys with this prefix from all
others.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-autoscaling-autoscalinggroup-tagproperty.html
"""

KEEP_TAG = "cdk-training-cluster:keep"
"""On an instance or its owner: it is not stopped for being idle. On an instance: it is not rebooted or replaced for
its health either."""

KEEP_UNTIL_TAG = "cdk-training-cluster:keep-until"
"""On an instance or its owner: the same until this time."""

IDLE_NOTE_TAG = "cdk-training-cluster:idle-note"
"""On idle nodes or their owner: since when they are idle and when they are stopped. No decision rests on it."""

POWER_TAG = "cdk-training-cluster:power"
"""On what owns a node group's nodes: who started, stopped or limited it last, when and why. It is read only
where the power function's record of the group is lost: what was stopped or limited then gets no more nodes."""

VERIFIED_TAG = "cdk-training-cluster:verified"
"""On an instance: whether its last verification passed, when, during which boot, and which checks failed. The node
writes it; nothing puts a node back into service of which it does not say that it passed."""

FAULTS_TAG = "cdk-training-cluster:faults"
"""On an instance: during which boot it runs, whether its job has ended, and its faults that a reboot or another node
ends. The node writes it once it has such a fault, and nothing is rebooted or replaced for a fault that it lacks."""

STACK_TAG = "cdk-training-cluster:stack"
"""On a Capacity Reservation that the reservation function made: the name of the stack that owns it."""

RESOURCE_TAG = "cdk-training-cluster:resource"
"""On the same reservation: the logical id of its resource in the stack's template."""

TERMS_TAG = "cdk-training-cluster:terms"
"""On the same reservation: a digest of what EC2 cannot change of it, by which the function finds one that fits."""

REQUESTS_TAG = "cdk-training-cluster:requests"
"""On the same reservation: the last requests of CloudFormation's, the newest last, so that one that Lambda delivers
again undoes no newer one."""

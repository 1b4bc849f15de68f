"""Own the Capacity Reservations that a stack makes in placement groups, for CloudFormation.

CloudFormation's own resource type takes no ARN of a placement group, because no ARN matches the pattern that its
schema has for the property. EC2's API takes it.
"""

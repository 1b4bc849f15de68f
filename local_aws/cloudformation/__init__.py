"""A CloudFormation that behaves as AWS's: every type handled or refused, schemas checked, failures rolled back.

`api` answers the service's actions; `plans` turns a request into what shall be; `deployment` deploys it,
resource by resource, through the handlers in `resources`, which call the other services as any client does.
"""

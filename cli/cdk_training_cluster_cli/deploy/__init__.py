"""The commands that run the CDK CLI."""

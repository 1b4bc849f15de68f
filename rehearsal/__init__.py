"""The rehearsal: the stacks deployed by the real CDK CLI to an AWS that runs on this machine."""

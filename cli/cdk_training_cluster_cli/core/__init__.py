"""The code that several families of commands share: the target, credentials, AWS errors, output and options."""

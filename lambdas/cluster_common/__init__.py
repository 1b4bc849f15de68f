"""What the functions of a training cluster share: tags, clients, metrics and errors."""

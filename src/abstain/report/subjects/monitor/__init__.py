"""A monitor: how a rule in use stands, in a document."""

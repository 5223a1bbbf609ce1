"""`ToolError`: what a tool raises when it cannot answer."""


class ToolError(Exception):
    """Says in words, to a model and to a person, why there is no result. It goes to the model as it is."""

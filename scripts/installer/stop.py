"""The one way an installation ends early."""


class Stop(Exception):
    """Nothing more can be done here. The message says, in a sentence or two, what happened and what to do."""

"""A failure that a person can act on. The words live in ui/texts, under `failure.<code>.what` and `failure.<code>.hint`."""


class Failure(Exception):
    """Something that went wrong and has a name.

    code: a key such as "server.port_taken"; params: what its sentences mention (strings only, never secrets).
    """

    def __init__(self, code: str, **params: object) -> None:
        self.code = code
        self.params = {name: str(value) for name, value in params.items()}
        super().__init__(code, self.params)

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{self.code} ({told})" if told else self.code

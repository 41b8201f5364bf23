"""What goes wrong for the user: one line, without a traceback."""


class AnalysisError(Exception):
    """A message for the user. code is the exit code: 2 usage, 3 a file that can't be read."""

    def __init__(self, message: str, code: int = 3) -> None:
        super().__init__(message)
        self.code = code

"""Sessions of line-based text protocols."""

from __future__ import annotations

MAX_LINE = 4096


class LineSession:
    """Answers each line with one line; over-long lines are dropped.

    Attributes:
        finished: whether to close the connection.
    """

    def __init__(self) -> None:
        self.finished = False
        self._buffer = b""

    def greeting(self) -> bytes:
        """Bytes to send when the connection opens; none by default."""
        return b""

    def receive(self, data: bytes) -> bytes:
        """Answers to the completed lines."""
        *lines, rest = (self._buffer + data).split(b"\n")
        self._buffer = b"" if len(rest) > MAX_LINE else rest
        answers = [self.answer(line.decode(errors="replace").strip()) for line in lines]
        return "".join(f"{answer}\n" for answer in answers).encode()

    def answer(self, line: str) -> str:
        """Answer to one line."""
        raise NotImplementedError

    def disconnected(self) -> None:
        """Nothing to release."""

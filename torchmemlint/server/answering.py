"""What the protocol's library leaves unanswered: requests that it cannot read."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol


class Answering(LanguageServerProtocol):
    """The protocol, where each request is answered: whoever waits for an answer would wait for ever."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the message that a JSON object is; of a request that is none, the client is told."""
        try:
            return super().structure_message(data)
        except JsonRpcException as problem:
            number = data.get("id")
            if "method" in data and isinstance(number, int | str):
                self._send_response(number, error=problem.to_response_error())
            raise

"""Calls of the REST API."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 30.0


class RequestError(Exception):
    """An error response. `code` is that of the server; UNREACHABLE: it does not answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f'{code}: {message}' if message != code else code)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class CreatedSession:
    """The reply of POST /sessions."""

    session_id: str
    agent_url: str
    """For `Agent`. Secret."""
    viewer_url: str
    """For the page of the viewer: it can only watch."""
    agent_token: str
    viewer_token: str


def _send(method: str, url: str, headers: dict[str, str], body: bytes | None) -> Any:
    call = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(call, timeout=TIMEOUT_SECONDS) as response:
            text = response.read()
    except urllib.error.HTTPError as error:
        try:
            told = json.loads(error.read())
        except ValueError:
            told = {}
        detail = told.get('detail')
        code = told.get('code') or (detail if isinstance(detail, str) else f'HTTP_{error.code}')
        message = told.get('error') or (code if isinstance(detail, str) else str(detail or code))
        raise RequestError(error.code, code, message) from None
    except OSError as error:
        raise RequestError(0, 'UNREACHABLE', str(error)) from error
    return json.loads(text) if text else None


async def request(
    base_url: str,
    path: str,
    *,
    api_key: str = '',
    api_key_header: str = 'x-service-api-key',
    method: str | None = None,
    body: object = None,
) -> Any:
    """Calls the REST API. Returns the JSON reply. Raises RequestError."""
    headers = {api_key_header: api_key} if api_key else {}
    data = None
    if body is not None:
        headers['content-type'] = 'application/json'
        data = json.dumps(body).encode()
    url = base_url.rstrip('/') + path
    return await asyncio.to_thread(
        _send, method or ('GET' if data is None else 'POST'), url, headers, data
    )


async def create_session(
    base_url: str,
    api_key: str,
    face_id: str,
    *,
    api_key_header: str = 'x-service-api-key',
    **more: Any,
) -> CreatedSession:
    """Opens a session with a connection for an agent and one for a viewer (POST /sessions).

    `more` are further fields of the request: graceSeconds, maxSessionLength, audioInputFormat.
    Raises RequestError.
    """
    reply = await request(
        base_url,
        '/sessions',
        api_key=api_key,
        api_key_header=api_key_header,
        body={'faceId': face_id, **more},
    )
    return CreatedSession(
        session_id=reply['sessionId'],
        agent_url=reply['agentUrl'],
        viewer_url=reply['viewerUrl'],
        agent_token=reply['tokens']['agent'],
        viewer_token=reply['tokens']['viewer'],
    )

"""The agent's side of a session: one WebSocket, which comes back by itself when it is lost."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import websockets
from websockets.exceptions import WebSocketException

from .speech import SPEECH_RATE, Speech, messages

FIRST_DELAY_SECONDS = 0.25
MAX_DELAY_SECONDS = 8.0
MAX_WAITING_EVENTS = 1000
"""Events that a reader may be behind; then it loses the oldest."""


class SessionError(Exception):
    """Why a session could not be joined, or ended early. `code` is one of /docs/protocol, or
    CONNECTION_LOST, SOCKET_FAILED, CLOSED."""

    def __init__(self, code: str, message: str = '') -> None:
        super().__init__(f'{code}: {message}' if message else code)
        self.code = code


@dataclass(frozen=True)
class Event:
    """An event of the server, as /docs/protocol has them: speaking, silent, viewer…"""

    type: str
    at: float
    """Unix time of the server, milliseconds."""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Heard:
    """The reply to `interrupt`."""

    heard_ms: int
    dropped_ms: int


@dataclass(frozen=True)
class Flushed:
    """The reply to `flush`."""

    id: str
    heard_ms: int
    interrupted: bool


@dataclass(frozen=True)
class End:
    """How it ended: the reason of a STOP, `closed`, `lost` or `error`."""

    reason: str
    error: SessionError | None


class Agent:
    """Sends speech and commands, and is told what the face does.

    Use it as `async with Agent(session.agent_url) as agent`.
    """

    def __init__(
        self, agent_url: str, *, grace_seconds: float = 60.0, reconnect: bool = True
    ) -> None:
        """`grace_seconds`: how long a lost connection is tried again, as POST /sessions was told."""
        self.session_id: str | None = None
        self.is_watched = False
        """Whether somebody watches. Speech waits while nobody does."""
        self.end: End | None = None
        self._url = agent_url
        self._grace_seconds = grace_seconds
        self._reconnect = reconnect
        self._socket: Any = None
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self._ended = asyncio.Event()
        self._speaking = asyncio.Lock()
        self._generation = 0
        self._flushes = 0
        self._interrupts: deque[asyncio.Future[Heard]] = deque()
        self._marks: dict[str, asyncio.Future[Flushed]] = {}
        self._readers: set[asyncio.Queue[Event | None]] = set()

    async def __aenter__(self) -> Agent:
        return await self.connect()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def connect(self) -> Agent:
        """Connects. Raises SessionError."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await self._ready()
        if self.end is not None:
            raise self.end.error or SessionError('CLOSED')
        return self

    async def speak(
        self,
        speech: Speech,
        *,
        rate: int = SPEECH_RATE,
        interrupt: bool = False,
        opus: bool = False,
    ) -> bool:
        """Appends speech to what the face will say. It may come much faster than real time.

        Returns True when all of it was sent, False when it was interrupted or the session ended.
        `rate` of PCM in Hz. `interrupt` forgets all speech before, once the first of this is there.
        """
        if interrupt:
            self._generation += 1
        generation = self._generation
        async with self._speaking:
            async for message in messages(speech, rate, opus):
                await self._ready()
                if self._generation != generation or self._socket is None:
                    return False
                try:
                    await self._socket.send(b'PLAY_IMMEDIATE' + message if interrupt else message)
                except WebSocketException:
                    return False
                interrupt = False
                await asyncio.sleep(0)
        return self._generation == generation

    async def interrupt(self) -> Heard:
        """Falls silent, and forgets all speech so far. Returns how much of the utterance was heard:
        cut the reply there. Raises SessionError when the connection is lost before the reply."""
        self._generation += 1
        reply: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        self._interrupts.append(reply)
        try:
            await self.command('interrupt')
        except SessionError:
            reply.cancel()
            raise
        return await reply

    async def flush(self, id: str | None = None) -> Flushed:
        """The speech so far is an utterance. Returns when it is over. Raises SessionError when the
        connection is lost before."""
        if id is None:
            self._flushes += 1
            id = f'utterance-{self._flushes}'
        reply: asyncio.Future[Flushed] = asyncio.get_running_loop().create_future()
        async with self._speaking:
            self._marks[id] = reply
            try:
                await self.command('flush', id=id)
            except SessionError:
                reply.cancel()
                raise
        return await reply

    async def command(self, type: str, **fields: Any) -> None:
        """Tells the face what to do: `command("gesture", gesture="nod")`. A command that cannot be
        obeyed gives the event `rejected`. Raises SessionError when the connection is lost."""
        try:
            if self._socket is None:
                raise SessionError('CONNECTION_LOST')
            await self._socket.send(json.dumps({'type': type, **fields}))
        except WebSocketException:
            raise SessionError('CONNECTION_LOST') from None

    async def finish(self) -> None:
        """Ends the session once what was sent has been spoken."""
        async with self._speaking:
            if self._socket is not None:
                await self._socket.send('DONE')
        await self._ended.wait()

    async def close(self) -> None:
        """Closes the socket. The session waits for its grace time: another agent may come."""
        self._finish(End('closed', None))
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def events(self) -> AsyncIterator[Event]:
        """The events from now on, until the end."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._readers.add(queue)
        return self._read(queue)

    async def _read(self, queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
        try:
            while self.end is None or not queue.empty():
                event = await queue.get()
                if event is None:
                    return
                yield event
        finally:
            self._readers.discard(queue)

    async def wait_for(self, type: str) -> Event:
        """The next event of a type. Raises SessionError when the session ends before."""
        async for event in self.events():
            if event.type == type:
                return event
        raise (self.end and self.end.error) or SessionError('CLOSED')

    async def _ready(self) -> None:
        """Resolves when it is connected, or over."""
        if self._connected.is_set() or self._ended.is_set():
            return
        waits = [asyncio.ensure_future(one.wait()) for one in (self._connected, self._ended)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        lost_at = loop.time()
        attempt = 0
        while self.end is None:
            try:
                async with websockets.connect(self._url, max_size=None) as socket:
                    async for text in socket:
                        if self._receive(json.loads(text), socket):
                            attempt = 0
            except (OSError, WebSocketException, asyncio.TimeoutError):
                pass
            self._socket = None
            self._connected.clear()
            self._forget()
            if self.end is not None:
                return
            if attempt == 0:
                lost_at = loop.time()
            has_been = self.session_id is not None
            if not (self._reconnect and has_been) or loop.time() - lost_at > self._grace_seconds:
                code = 'CONNECTION_LOST' if has_been else 'SOCKET_FAILED'
                self._finish(End('lost', SessionError(code)))
                return
            self._tell(Event('reconnecting', 0.0, {'attempt': attempt + 1}))
            await asyncio.sleep(min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**attempt))
            attempt += 1

    def _receive(self, message: dict[str, Any], socket: Any) -> bool:
        """Returns whether the server took the agent in."""
        type, at = message.pop('type'), message.pop('at', 0.0)
        if type == 'session':
            self.session_id = message['session_id']
            self._socket = socket
            self._connected.set()
        elif type == 'viewer':
            self.is_watched = message['connected']
        elif type == 'interrupted' and self._interrupts:
            _settle(self._interrupts.popleft(), Heard(message['heardMs'], message['droppedMs']))
        elif type == 'flushed' and message['id'] in self._marks:
            told = Flushed(message['id'], message['heardMs'], message['interrupted'])
            _settle(self._marks.pop(message['id']), told)
        self._tell(Event(type, at, message))
        if type == 'stopped':
            self._finish(End(message['reason'] or 'stop', None))
        elif type == 'error':
            error = SessionError(message['code'], message.get('message', ''))
            self._finish(End('error', error))
        return type == 'session'

    def _tell(self, event: Event | None) -> None:
        for queue in self._readers:
            if queue.qsize() >= MAX_WAITING_EVENTS:
                queue.get_nowait()
            queue.put_nowait(event)

    def _forget(self) -> None:
        """Replies do not come any more."""
        for reply in [*self._interrupts, *self._marks.values()]:
            if not reply.done():
                reply.set_exception(SessionError('CONNECTION_LOST'))
        self._interrupts.clear()
        self._marks.clear()

    def _finish(self, end: End) -> None:
        if self.end is None:
            self.end = end
            self._generation += 1
            self._forget()
            self._tell(None)
            self._ended.set()


def _settle(reply: asyncio.Future[Any], value: Any) -> None:
    if not reply.done():
        reply.set_result(value)

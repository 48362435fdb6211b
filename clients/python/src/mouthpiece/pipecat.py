"""A face at the end of a Pipecat pipeline, in the place of the audio output:
Pipeline([..., tts, MouthpieceFace(session.agent_url)]). Needs the package pipecat-ai."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from pipecat.frames.frames import (
    BotSpeakingFrame,
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    CancelFrame,
    EndFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    StartFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from .agent import Agent, Event, Heard, SessionError


class MouthpieceFace(FrameProcessor):
    """Speaks what the voice gives, instead of passing it on, and says when it speaks."""

    def __init__(self, agent_url: str, **options: Any) -> None:
        """`agent_url` of `create_session`."""
        super().__init__(**options)
        self.agent = Agent(agent_url)
        self.last_heard: Heard | None = None
        """How much of the reply was heard that was interrupted last."""
        self._listener: asyncio.Task[None] | None = None
        self._is_replying = False
        self._begins_reply = False
        self._replies = 0

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Takes the voice out of the pipeline."""
        await super().process_frame(frame, direction)
        if isinstance(frame, StartFrame):
            await self._start()
        elif isinstance(frame, LLMFullResponseStartFrame):
            self._is_replying = self._begins_reply = True
        elif isinstance(frame, LLMFullResponseEndFrame):
            self._is_replying = False
        elif isinstance(frame, TTSAudioRawFrame):
            await self._speak(frame)
            return
        elif isinstance(frame, InterruptionFrame):
            await self._interrupt()
        elif isinstance(frame, EndFrame):
            await self.agent.finish()
        elif isinstance(frame, CancelFrame):
            await self.agent.close()
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        """Closes the connection."""
        await super().cleanup()
        await self.agent.close()
        if self._listener is not None:
            await asyncio.gather(self._listener, return_exceptions=True)

    async def _start(self) -> None:
        self._listener = asyncio.create_task(self._listen(self.agent.events()))
        # The listener reports why; the pipeline starts, and decides what to do.
        with contextlib.suppress(SessionError):
            await self.agent.connect()

    async def _speak(self, frame: TTSAudioRawFrame) -> None:
        if self._begins_reply:
            # What was heard is counted from here.
            self._begins_reply = False
            self._replies += 1
            with contextlib.suppress(SessionError):
                await self.agent.command('flush', id=f'before-reply-{self._replies}')
        await self.agent.speak(frame.audio, rate=frame.sample_rate)

    async def _interrupt(self) -> None:
        self._is_replying = False
        # Without the connection: it is on its way back, without the speech.
        with contextlib.suppress(SessionError):
            self.last_heard = await self.agent.interrupt()

    async def _listen(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if event.type == 'speaking':
                await self.broadcast_frame(BotStartedSpeakingFrame)
                # Else a pipeline in which only the face speaks is taken for idle.
                await self.broadcast_frame(BotSpeakingFrame)
            elif event.type == 'silent':
                # A reply may fall silent until the voice has more of it. Speech without a language
                # model is a reply until it is silent.
                self._begins_reply = self._begins_reply or not self._is_replying
                await self.broadcast_frame(BotStoppedSpeakingFrame)
        end = self.agent.end
        if end is not None and end.error is not None:
            await self.push_error(f'The session of the face has ended: {end.error}', end.error)

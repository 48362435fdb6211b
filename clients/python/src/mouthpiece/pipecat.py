"""A face at the end of a Pipecat pipeline, in the place of the audio output:
Pipeline([..., tts, MouthpieceFace(session.agent_url)]). Needs the package pipecat-ai."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    CancelFrame,
    EndFrame,
    Frame,
    InterruptionFrame,
    StartFrame,
    TTSAudioRawFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from .agent import Agent, Heard, SessionError


class MouthpieceFace(FrameProcessor):
    """Speaks what the voice gives, instead of passing it on, and says when it speaks."""

    def __init__(self, agent_url: str, **options: Any) -> None:
        """`agent_url` of `create_session`."""
        super().__init__(**options)
        self.agent = Agent(agent_url)
        self.last_heard: Heard | None = None
        """How much of the reply was heard that was interrupted last."""
        self._listener: asyncio.Task[None] | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Takes the voice out of the pipeline."""
        await super().process_frame(frame, direction)
        if isinstance(frame, StartFrame):
            await self.agent.connect()
            self._listener = asyncio.create_task(self._listen())
        elif isinstance(frame, TTSAudioRawFrame):
            await self.agent.speak(frame.audio, rate=frame.sample_rate)
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

    async def _interrupt(self) -> None:
        # Without the connection: it is on its way back, without the speech.
        with contextlib.suppress(SessionError):
            self.last_heard = await self.agent.interrupt()

    async def _listen(self) -> None:
        kinds = {'speaking': BotStartedSpeakingFrame, 'silent': BotStoppedSpeakingFrame}
        async for event in self.agent.events():
            if event.type in kinds:
                await self.push_frame(kinds[event.type](), FrameDirection.UPSTREAM)
                await self.push_frame(kinds[event.type](), FrameDirection.DOWNSTREAM)

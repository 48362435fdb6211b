"""A Pipecat pipeline that ends in a face, for the test: prints what it saw as JSON."""

import asyncio
import json
import math
import sys
from array import array

from loguru import logger
from pipecat.frames.frames import (
    BotSpeakingFrame,
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    EndFrame,
    ErrorFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TTSService
from pipecat.workers.runner import WorkerRunner

from mouthpiece import create_session
from mouthpiece.pipecat import MouthpieceFace

RATE = 24_000
LIMIT_SECONDS = 30
SECONDS_A_WORD = 0.3


class Voice(TTSService):
    """A tone of 0.3 s for each word, in pieces of 20 ms."""

    def __init__(self):
        super().__init__(
            sample_rate=RATE,
            push_start_frame=True,
            push_stop_frames=True,
            settings=TTSSettings(model=None, voice=None, language=None),
        )

    async def run_tts(self, text, context_id):
        samples = int(len(text.split()) * SECONDS_A_WORD * RATE)
        pcm = array('h', (int(9000 * math.sin(at / 12)) for at in range(samples)))
        step = RATE // 50
        for start in range(0, samples, step):
            piece = pcm[start : start + step].tobytes()
            yield TTSAudioRawFrame(piece, RATE, 1, context_id=context_id)


class Watch(FrameProcessor):
    """Notes what the face says, in the order in which it comes."""

    NAMES = {BotStartedSpeakingFrame: 'started', BotStoppedSpeakingFrame: 'stopped'}

    def __init__(self):
        super().__init__()
        self.seen = asyncio.Queue()
        self.errors = []
        self.counts = {'speech': 0, 'activity': 0}

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if type(frame) in self.NAMES:
            self.seen.put_nowait(self.NAMES[type(frame)])
        elif isinstance(frame, ErrorFrame):
            self.errors.append(frame.error)
        self.counts['speech'] += isinstance(frame, TTSAudioRawFrame)
        self.counts['activity'] += isinstance(frame, BotSpeakingFrame)
        await self.push_frame(frame, direction)

    async def next(self):
        return await asyncio.wait_for(self.seen.get(), LIMIT_SECONDS)


class Pipe:
    """A pipeline that runs: a voice, and a face between two who watch."""

    def __init__(self, agent_url):
        self.before, self.after = Watch(), Watch()
        self.face = MouthpieceFace(agent_url)
        processors = [Voice(), self.before, self.face, self.after]
        self.worker = PipelineWorker(Pipeline(processors))
        self.running = asyncio.create_task(self._run())

    async def _run(self):
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(self.worker)
        await runner.run()

    async def reply(self, *sentences):
        """As a language model gives it."""
        texts = [LLMTextFrame(f'{sentence} ') for sentence in sentences]
        frames = [LLMFullResponseStartFrame(), *texts, LLMFullResponseEndFrame()]
        await self.worker.queue_frames(frames)

    async def until_spoken(self):
        return [await self.before.next(), await self.before.next()]

    async def interrupted(self):
        """Interrupts half a second after the face began. Returns what was heard, ms."""
        assert await self.before.next() == 'started'
        self.face.last_heard = None
        await asyncio.sleep(0.5)
        await self.worker.queue_frame(InterruptionFrame())
        assert await self.before.next() == 'stopped'
        for _ in range(100):
            if self.face.last_heard is not None:
                break
            await asyncio.sleep(0.05)
        return self.face.last_heard.heard_ms

    async def end(self):
        await self.worker.queue_frame(EndFrame())
        await asyncio.wait_for(self.running, LIMIT_SECONDS)


async def main(base_url, key, face_id):
    logger.remove()
    session = await create_session(base_url, key, face_id)
    # The test joins as the viewer.
    print(json.dumps({'event': 'session', 'viewerToken': session.viewer_token}), flush=True)
    pipe = Pipe(session.agent_url)
    seen = {'event': 'seen'}
    await pipe.reply('This is heard to its end.')
    seen['whole'] = await pipe.until_spoken()
    await pipe.reply('One two three four five six. ' * 5)
    seen['heardOfReply'] = await pipe.interrupted()
    await pipe.worker.queue_frame(TTSSpeakFrame('Three more words.'))
    seen['next'] = await pipe.until_spoken()
    await pipe.worker.queue_frame(TTSSpeakFrame('One two three four five six. ' * 5))
    seen['heardOfSpeech'] = await pipe.interrupted()
    await pipe.worker.queue_frame(TTSSpeakFrame('The last words.'))
    await pipe.end()
    seen['last'] = await pipe.until_spoken()
    seen['end'] = pipe.face.agent.end.reason
    seen['passed'] = pipe.after.counts['speech']
    seen['isActive'] = pipe.after.counts['activity'] >= 5
    seen['downstream'] = pipe.after.seen.qsize()
    seen['errors'] = pipe.before.errors

    # The session is over: a pipeline that is given it starts, is told, and ends.
    pipe = Pipe(session.agent_url)
    await pipe.reply('Nobody hears this.')
    await pipe.end()
    seen['refused'] = pipe.before.errors
    print(json.dumps(seen), flush=True)


asyncio.run(main(*sys.argv[1:]))

"""An agent of LiveKit's Python SDK: streams speech to an avatar, interrupts it, and prints what happens.

Reads one command per line: `say SECONDS RATE CHANNELS [HZ]`, `file PATH RATE CHANNELS` (PCM16), `clear`,
`unknown`, `frames`, `heard`, `quit`; and to harm: `endless SECONDS` (a byte stream without an end) and
`flood SECONDS` (calls and byte streams as fast as they can be sent). Writes one JSON line per event.
"""

import array
import asyncio
import collections
import contextlib
import json
import math
import pathlib
import sys
import time

from livekit import rtc

# Tones are this far apart, so that 10 ms tell which one it is.
TONE_STEP_HZ = 200
LOUD = 1500


def tell(event: str, **fields: object) -> None:
    """Write one event."""
    print(json.dumps({'event': event, 'atMs': time.monotonic() * 1000, **fields}), flush=True)


def tone(seconds: float, rate: int, channels: int, hz: float) -> bytes:
    """PCM16 of one frequency."""
    samples = array.array('h')
    for n in range(int(seconds * rate)):
        samples.extend([int(8000 * math.sin(2 * math.pi * hz * n / rate))] * channels)
    return samples.tobytes()


class Agent:
    """The participant."""

    def __init__(self, avatar: str) -> None:
        """Join with `run`."""
        self.avatar = avatar
        self.room = rtc.Room()
        self.tasks: list[asyncio.Task] = []
        self.pictures = 0
        self.sounds = 0
        # Milliseconds of each tone that were heard, by its frequency.
        self.heard: collections.Counter = collections.Counter()

    async def watch(self, track: rtc.Track) -> None:
        """Count the pictures."""
        async for _ in rtc.VideoStream(track):
            self.pictures += 1

    async def listen(self, track: rtc.Track) -> None:
        """Count the sound, and what tones are in it."""
        async for event in rtc.AudioStream(track, sample_rate=48000, num_channels=1):
            self.sounds += 1
            samples = memoryview(event.frame.data).cast('B').cast('h')
            if max(samples) > LOUD:
                signs = [sample >= 0 for sample in samples]
                crossings = sum(a != b for a, b in zip(signs, signs[1:], strict=False))
                ms = len(samples) / 48
                hz = round(crossings * 500 / ms / TONE_STEP_HZ) * TONE_STEP_HZ
                self.heard[hz] += ms

    async def stream(self, speech: bytes, rate: int, channels: int) -> None:
        """Send one segment."""
        writer = await self.open(rate, channels)
        await writer.write(speech)
        await writer.aclose()

    async def open(self, rate: int, channels: int) -> rtc.ByteStreamWriter:
        """Begin one segment."""
        return await self.room.local_participant.stream_bytes(
            name='AUDIO',
            topic='lk.audio_stream',
            destination_identities=[self.avatar],
            attributes={'sample_rate': str(rate), 'num_channels': str(channels)},
        )

    async def call(self, method: str) -> dict[str, object]:
        """Call a method of the avatar."""
        try:
            answer = await self.room.local_participant.perform_rpc(
                destination_identity=self.avatar, method=method, payload='', response_timeout=5
            )
        except rtc.RpcError as error:
            return {'code': error.code}
        return {'answer': answer}

    async def endless(self, seconds: float) -> None:
        """Send a segment that does not end."""
        writer = await self.open(48000, 2)
        until = time.monotonic() + seconds
        sent = 0
        while time.monotonic() < until:
            await writer.write(bytes(60000))
            sent += 60000
            await asyncio.sleep(0)
        tell('flooded', bytes=sent)

    async def flood(self, seconds: float) -> None:
        """Send segments and calls side by side."""
        until = time.monotonic() + seconds
        calls = 0
        answers: collections.Counter = collections.Counter()

        async def call() -> None:
            nonlocal calls
            while time.monotonic() < until:
                calls += 1
                answers.update(
                    str(value) for value in (await self.call('lk.clear_buffer')).values()
                )

        async def stream() -> None:
            with contextlib.suppress(Exception):
                while time.monotonic() < until:
                    await self.stream(bytes(200000), 16000, 1)

        await asyncio.gather(stream(), *[call() for _ in range(20)])
        tell('flooded', calls=calls, answers=answers)

    async def run(self, url: str, token: str) -> None:
        """Join, and obey the commands."""
        room = self.room

        @room.on('track_subscribed')
        def _(track: rtc.Track, *_rest: object) -> None:
            is_video = track.kind == rtc.TrackKind.KIND_VIDEO
            work = self.watch(track) if is_video else self.listen(track)
            self.tasks.append(asyncio.ensure_future(work))
            tell('subscribed', kind='video' if is_video else 'audio')

        @room.on('participant_disconnected')
        def _(participant: rtc.RemoteParticipant) -> None:
            tell('left', identity=participant.identity)

        await room.connect(url, token)

        @room.local_participant.register_rpc_method('lk.playback_started')
        async def _(_data: rtc.RpcInvocationData) -> str:
            tell('started')
            return 'ok'

        @room.local_participant.register_rpc_method('lk.playback_finished')
        async def _(data: rtc.RpcInvocationData) -> str:
            tell('finished', caller=data.caller_identity, **json.loads(data.payload))
            return 'ok'

        tell('connected')
        loop = asyncio.get_running_loop()
        while True:
            words = (await loop.run_in_executor(None, sys.stdin.readline)).split()
            if not words or words[0] == 'quit':
                break
            await self.obey(words)
        await room.disconnect()

    async def obey(self, words: list[str]) -> None:
        """Do one command."""
        if words[0] in ('say', 'file'):
            rate, channels = int(words[2]), int(words[3])
            if words[0] == 'say':
                hz = float(words[4]) if len(words) > 4 else TONE_STEP_HZ
                speech = tone(float(words[1]), rate, channels, hz)
            else:
                speech = pathlib.Path(words[1]).read_bytes()
            began = time.monotonic() * 1000
            await self.stream(speech, rate, channels)
            tell('sent', beganMs=began)
        elif words[0] == 'frames':
            tell('frames', video=self.pictures, audio=self.sounds)
        elif words[0] == 'heard':
            tell('heard', ms=self.heard)
        elif words[0] in ('endless', 'flood'):
            work = self.endless if words[0] == 'endless' else self.flood
            self.tasks.append(asyncio.ensure_future(work(float(words[1]))))
        else:
            method = 'lk.clear_buffer' if words[0] == 'clear' else 'lk.nothing'
            tell('answered', **await self.call(method))


async def main(url: str, token: str, avatar: str) -> None:
    """Run the agent on this loop, to which its room is bound."""
    await Agent(avatar).run(url, token)


asyncio.run(main(*sys.argv[1:4]))

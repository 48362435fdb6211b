"""An agent of LiveKit's Python SDK: streams speech to an avatar, interrupts it, and prints what happens.

Reads one command per line: `say SECONDS RATE CHANNELS`, `file PATH RATE CHANNELS` (PCM16), `clear`,
`unknown`, `quit`. Writes one JSON line per event.
"""

import asyncio
import json
import math
import pathlib
import sys
import time

from livekit import rtc


def tell(event: str, **fields: object) -> None:
    """Write one event."""
    print(json.dumps({'event': event, 'atMs': time.monotonic() * 1000, **fields}), flush=True)


def tone(seconds: float, rate: int, channels: int) -> bytes:
    """PCM16 of 200 Hz."""
    samples = bytearray()
    for n in range(int(seconds * rate)):
        value = int(8000 * math.sin(2 * math.pi * 200 * n / rate))
        samples += value.to_bytes(2, 'little', signed=True) * channels
    return bytes(samples)


async def main(url: str, token: str, avatar: str) -> None:
    """Join, and obey the commands."""
    room = rtc.Room()
    frames = {'video': 0, 'audio': 0}

    async def count(stream: object, kind: str) -> None:
        async for _ in stream:
            frames[kind] += 1

    tasks = []

    @room.on('track_subscribed')
    def _(track: rtc.Track, *_rest: object) -> None:
        is_video = track.kind == rtc.TrackKind.KIND_VIDEO
        stream = rtc.VideoStream(track) if is_video else rtc.AudioStream(track)
        tasks.append(asyncio.ensure_future(count(stream, 'video' if is_video else 'audio')))
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
        if words[0] in ('say', 'file'):
            rate, channels = int(words[2]), int(words[3])
            if words[0] == 'say':
                speech = tone(float(words[1]), rate, channels)
            else:
                speech = pathlib.Path(words[1]).read_bytes()
            began = time.monotonic() * 1000
            writer = await room.local_participant.stream_bytes(
                name='AUDIO',
                topic='lk.audio_stream',
                destination_identities=[avatar],
                attributes={'sample_rate': str(rate), 'num_channels': str(channels)},
            )
            await writer.write(speech)
            await writer.aclose()
            tell('sent', beganMs=began)
        elif words[0] == 'frames':
            tell('frames', **frames)
        else:
            method = 'lk.clear_buffer' if words[0] == 'clear' else 'lk.nothing'
            try:
                answer = await room.local_participant.perform_rpc(
                    destination_identity=avatar, method=method, payload=''
                )
                tell('answered', answer=answer)
            except rtc.RpcError as error:
                tell('answered', code=error.code)
    await room.disconnect()


asyncio.run(main(*sys.argv[1:4]))

"""A client on aiortc, with OpenSSL and its own ICE, SCTP and jitter buffers.

One JSON message a line: it writes its offer, reads the answer and writes figures.
"""

import asyncio
import json
import sys

from aiortc import RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, MediaStreamError


def tell(**message):
    print(json.dumps(message), flush=True)


async def main():
    wish = json.loads(sys.argv[1])
    pc = RTCPeerConnection()
    counts = {'video': 0, 'audio': 0}

    @pc.on('track')
    def on_track(track):
        async def drain():
            try:
                while True:
                    frame = await track.recv()
                    counts[track.kind] += 1
                    if counts[track.kind] in (1, 60):
                        size = (
                            [frame.width, frame.height]
                            if track.kind == 'video'
                            else [frame.sample_rate, frame.samples]
                        )
                        tell(event='frames', kind=track.kind, count=counts[track.kind], size=size)
            except MediaStreamError:
                tell(event='ended', kind=track.kind)

        asyncio.ensure_future(drain())

    @pc.on('connectionstatechange')
    def on_state():
        tell(event='state', state=pc.connectionState)

    if wish.get('microphone'):
        pc.addTrack(AudioStreamTrack())
    else:
        pc.addTransceiver('audio', direction='recvonly')
    video = pc.addTransceiver('video', direction='recvonly')
    codecs = RTCRtpReceiver.getCapabilities('video').codecs
    video.setCodecPreferences(
        [c for c in codecs if c.mimeType.lower() in ('video/' + wish['codec'], 'video/rtx')]
    )
    channel = pc.createDataChannel('events')

    @channel.on('open')
    def on_open():
        channel.send('hello')
        tell(event='channel')

    @pc.on('datachannel')
    def on_channel(theirs):
        @theirs.on('message')
        def on_message(message):
            theirs.send(message)

    await pc.setLocalDescription(await pc.createOffer())
    tell(event='offer', sdp=pc.localDescription.sdp)
    loop = asyncio.get_running_loop()
    answer = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    await pc.setRemoteDescription(RTCSessionDescription(sdp=answer['sdp'], type='answer'))
    await loop.run_in_executor(None, sys.stdin.readline)
    await pc.close()


asyncio.run(main())

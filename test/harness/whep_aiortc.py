"""A WHEP viewer on aiortc: argv is the URL and the token. One JSON message a line.

A line on its standard input ends it. It restarts no ICE: aiortc cannot.
"""

import asyncio
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

import aiortc
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError


def tell(**message):
    print(json.dumps(message), flush=True)


def call(method, url, token, body=None, kind='application/sdp'):
    headers = {'authorization': f'Bearer {token}', 'content-type': kind}
    request = urllib.request.Request(url, body and body.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, dict(reply.headers.items()), reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers.items()), error.read().decode()


async def main(url, token):
    tell(event='version', version=aiortc.__version__)
    pc = RTCPeerConnection()
    loop = asyncio.get_running_loop()

    @pc.on('track')
    def on_track(track):
        async def drain():
            count = 0
            try:
                while True:
                    frame = await track.recv()
                    count += 1
                    size = (
                        [frame.width, frame.height]
                        if track.kind == 'video'
                        else [frame.sample_rate, frame.samples]
                    )
                    if count % 25 == 0:
                        tell(event='frames', kind=track.kind, count=count, size=size)
            except MediaStreamError:
                tell(event='ended', kind=track.kind)

        asyncio.ensure_future(drain())

    pc.addTransceiver('video', direction='recvonly')
    pc.addTransceiver('audio', direction='recvonly')
    await pc.setLocalDescription(await pc.createOffer())
    status, headers, answer = await loop.run_in_executor(
        None, call, 'POST', url, token, pc.localDescription.sdp
    )
    headers = {name.lower(): value for name, value in headers.items()}
    resource = urllib.parse.urljoin(url, headers['location'])
    tell(event='answer', status=status, type=headers['content-type'], etag=headers['etag'])
    await pc.setRemoteDescription(RTCSessionDescription(sdp=answer, type='answer'))
    lines = [line[2:] for line in pc.localDescription.sdp.splitlines()]
    fragment = [line for line in lines if line.startswith(('ice-ufrag', 'ice-pwd', 'mid:'))][:3]
    fragment = ''.join(f'a={line}\r\n' for line in [*fragment[:2], 'end-of-candidates'])
    status, _, _ = await loop.run_in_executor(
        None, call, 'PATCH', resource, token, fragment, 'application/trickle-ice-sdpfrag'
    )
    tell(event='trickle', status=status)
    await loop.run_in_executor(None, sys.stdin.readline)
    status, _, _ = await loop.run_in_executor(None, call, 'DELETE', resource, token)
    again, _, _ = await loop.run_in_executor(None, call, 'DELETE', resource, token)
    tell(event='deleted', status=status, again=again)
    await pc.close()


asyncio.run(main(*sys.argv[1:]))

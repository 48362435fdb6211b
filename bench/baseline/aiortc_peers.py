"""The plain alternative: aiortc sends given pictures and speech to many peers.

Each peer has an encoder of its own, with Mouthpiece's encoder settings. JSON lines on stdin
({"id", "offer"}, {"id", "close": true}) and stdout ({"id", "answer"}, {"id", "state"}).
Usage: python3 aiortc_peers.py PICTURES.yuv WIDTH HEIGHT SPEECH.raw KBPS CPU_USED"""

import asyncio
import fractions
import json
import sys
import threading
import time

import aioice.ice
import av
import numpy
from aiortc import MediaStreamTrack, RTCPeerConnection, RTCSessionDescription
from aiortc.codecs import vpx

FPS = 30
AUDIO_RATE = 48_000
AUDIO_SAMPLES = AUDIO_RATE // 50


class SameSettings:
    """libvpx's controls with the values that Mouthpiece uses, whatever aiortc asks for."""

    def __init__(self, lib, cpu_used):
        self._lib = lib
        self._wanted = {lib.VP8E_SET_CPUUSED: cpu_used, lib.VP8E_SET_NOISE_SENSITIVITY: 0}

    def __getattr__(self, name):
        return getattr(self._lib, name)

    def vpx_codec_control_(self, codec, control, value):
        if control in self._wanted:
            value = vpx.ffi.cast('int', self._wanted[control])
        return self._lib.vpx_codec_control_(codec, control, value)


class Paced(MediaStreamTrack):
    """Frames at a steady pace from the moment the first is asked for."""

    def __init__(self, kind, interval):
        super().__init__()
        self.kind, self.interval, self.count, self.started = kind, interval, 0, None

    async def recv(self):
        self.started = self.started or time.monotonic()
        delay = self.started + self.count * self.interval - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        frame = self.make(self.count)
        self.count += 1
        return frame


class Pictures(Paced):
    def __init__(self, pictures):
        super().__init__('video', 1 / FPS)
        self.pictures = pictures

    def make(self, index):
        # There and back again, as the bare encode does: no cut between the last picture and the first.
        step = index % (2 * len(self.pictures) - 2)
        frame = self.pictures[
            step if step < len(self.pictures) else 2 * len(self.pictures) - 2 - step
        ]
        frame.pts, frame.time_base = index * 3000, fractions.Fraction(1, 90_000)
        return frame


class Speech(Paced):
    def __init__(self, samples):
        super().__init__('audio', 1 / 50)
        self.samples = samples

    def make(self, index):
        start = index * AUDIO_SAMPLES % (len(self.samples) - AUDIO_SAMPLES)
        frame = av.AudioFrame(format='s16', layout='mono', samples=AUDIO_SAMPLES)
        frame.planes[0].update(self.samples[start : start + AUDIO_SAMPLES].tobytes())
        frame.sample_rate, frame.pts, frame.time_base = (
            AUDIO_RATE,
            index * AUDIO_SAMPLES,
            fractions.Fraction(1, AUDIO_RATE),
        )
        return frame


def read_pictures(path, width, height):
    data = numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, height * 3 // 2, width)
    return [av.VideoFrame.from_ndarray(picture, format='yuv420p') for picture in data]


def tell(**message):
    print(json.dumps(message), flush=True)


async def main():
    pictures_file, width, height, speech_file, kbps, cpu_used = sys.argv[1:]
    vpx.lib = SameSettings(vpx.lib, int(cpu_used))
    vpx.number_of_threads = lambda *_: 1
    vpx.DEFAULT_BITRATE = vpx.MIN_BITRATE = vpx.MAX_BITRATE = int(kbps) * 1000
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ['127.0.0.1']
    pictures = read_pictures(pictures_file, int(width), int(height))
    # 16 kHz to 48 kHz by repetition: what it costs to resample well is not what is compared.
    samples = numpy.repeat(numpy.fromfile(speech_file, dtype='<i2'), 3)
    peers = {}
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue()

    def read():
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    tell(ready=True, pictures=len(pictures))
    while (line := await lines.get()) is not None:
        message = json.loads(line)
        key = message['id']
        if 'close' in message:
            pc = peers.pop(key, None)
            if pc:
                await pc.close()
            continue
        pc = peers[key] = RTCPeerConnection()
        pc.addTrack(Pictures(pictures))
        pc.addTrack(Speech(samples))
        pc.on(
            'connectionstatechange', lambda pc=pc, key=key: tell(id=key, state=pc.connectionState)
        )
        await pc.setRemoteDescription(RTCSessionDescription(sdp=message['offer'], type='offer'))
        await pc.setLocalDescription(await pc.createAnswer())
        tell(id=key, answer=pc.localDescription.sdp)
    for pc in peers.values():
        await pc.close()


asyncio.run(main())

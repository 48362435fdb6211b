"""An agent in Python, with the voice of any OpenAI-compatible service: pip install ./clients/python,
then python agent.py "What to say". Open the address that it prints in a WHEP player, or give it to
<mouthpiece-avatar viewer-url="…">."""

import asyncio
import json
import os
import sys
import urllib.request

from mouthpiece import Agent, create_session

URL = os.environ.get('MOUTHPIECE_URL', 'http://localhost:8080')
TTS = os.environ.get('TTS_BASE_URL', 'https://api.openai.com/v1')


def voice(text: str) -> bytes:
    body = {'model': 'tts-1', 'voice': 'alloy', 'input': text, 'response_format': 'pcm'}
    headers = {
        'content-type': 'application/json',
        'authorization': f'Bearer {os.environ.get("TTS_KEY", "")}',
    }
    call = urllib.request.Request(f'{TTS}/audio/speech', json.dumps(body).encode(), headers)
    with urllib.request.urlopen(call) as response:
        return response.read()


async def main(text: str) -> None:
    key, face = os.environ['MOUTHPIECE_KEY'], os.environ.get('FACE', 'ava')
    session = await create_session(URL, key, face)
    print(session.viewer_url, flush=True)
    async with Agent(session.agent_url) as agent:
        await agent.speak(await asyncio.to_thread(voice, text), rate=24_000)
        told = await agent.flush()  # it waits for the viewer
        print(f'heard {told.heard_ms} ms', flush=True)
        await agent.finish()


asyncio.run(main(sys.argv[1]))

"""An agent in a LiveKit room whose voice has a face: pip install livekit livekit-api, then
python livekit_agent.py ROOM "What to say". LIVEKIT_URL, LIVEKIT_API_KEY and LIVEKIT_API_SECRET name
the LiveKit server. Whoever joins the room sees and hears the participant `avatar`."""

import asyncio
import json
import os
import sys
import urllib.request

from livekit import api, rtc

URL = os.environ.get('MOUTHPIECE_URL', 'http://localhost:8080')
TTS = os.environ.get('TTS_BASE_URL', 'https://api.openai.com/v1')


def post(url: str, body: dict, headers: dict) -> bytes:
    headers = {'content-type': 'application/json', **headers}
    with urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(body).encode(), headers)
    ) as it:
        return it.read()


def send_avatar(room: str) -> None:
    """A session of the face, which joins the room and speaks for the agent."""
    key = {'x-service-api-key': os.environ['MOUTHPIECE_KEY']}
    made = post(f'{URL}/compose/token', {'faceId': os.environ.get('FACE', 'ava')}, key)
    join = {
        'session_token': json.loads(made)['session_token'],
        'livekit_token': token('avatar', room, {'lk.publish_on_behalf': 'agent'}),
        'livekit_url': os.environ['LIVEKIT_URL'],
    }
    post(f'{URL}/integrations/livekit/agents', join, {})


def token(identity: str, room: str, attributes: dict[str, str]) -> str:
    grants = api.VideoGrants(room_join=True, room=room)
    made = api.AccessToken().with_identity(identity).with_kind('agent')
    return made.with_attributes(attributes).with_grants(grants).to_jwt()


async def main(name: str, text: str) -> None:
    room, heard = rtc.Room(), asyncio.get_running_loop().create_future()
    await room.connect(os.environ['LIVEKIT_URL'], token('agent', name, {}))

    @room.local_participant.register_rpc_method('lk.playback_finished')
    async def _(told: rtc.RpcInvocationData) -> str:
        heard.set_result(json.loads(told.payload)['playback_position'])
        return 'ok'

    await asyncio.to_thread(send_avatar, name)
    body = {'model': 'tts-1', 'voice': 'alloy', 'input': text, 'response_format': 'pcm'}
    key = {'authorization': f'Bearer {os.environ.get("TTS_KEY", "")}'}
    voice = await asyncio.to_thread(post, f'{TTS}/audio/speech', body, key)
    stream = await room.local_participant.stream_bytes(
        name='AUDIO',
        topic='lk.audio_stream',
        destination_identities=['avatar'],
        attributes={'sample_rate': '24000', 'num_channels': '1'},
    )
    await stream.write(voice)
    await stream.aclose()
    print(f'heard {round(await heard * 1000)} ms', flush=True)
    await room.disconnect()  # the avatar leaves with its agent


asyncio.run(main(*sys.argv[1:3]))

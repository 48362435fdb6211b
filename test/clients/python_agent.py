"""Runs the Python client against a server, for the test: prints what it saw as JSON."""

import asyncio
import json
import math
import sys
from array import array

from mouthpiece import Agent, RequestError, SessionError, create_session


def tone(seconds: float, rate: int) -> bytes:
    return array(
        'h', (int(9000 * math.sin(at / 12)) for at in range(int(seconds * rate)))
    ).tobytes()


async def pieces(pcm: bytes):
    for start in range(0, len(pcm), 4801):
        yield pcm[start : start + 4801]


async def main(base_url: str, key: str, face_id: str) -> None:
    seen: dict[str, object] = {}
    try:
        await create_session(base_url, key, 'nobody-has-this-face')
    except RequestError as error:
        seen['refused'] = error.code
    session = await create_session(base_url, key, face_id, graceSeconds=20)
    # The test joins as the viewer.
    print(json.dumps({'viewerToken': session.viewer_token}), flush=True)
    async with Agent(session.agent_url, grace_seconds=20) as agent:
        watched = agent.events()
        while not agent.is_watched:
            await anext(watched)
        speaking = asyncio.create_task(agent.wait_for('speaking'))
        seen['whole'] = await agent.speak(pieces(tone(0.8, 24_000)), rate=24_000)
        silent = asyncio.create_task(agent.wait_for('silent'))
        first = await agent.flush()
        seen['first'] = [first.heard_ms, first.interrupted]
        seen['utterance'] = (await speaking).data['utterance']

        await silent
        events = agent.events()
        sending = asyncio.create_task(agent.speak(tone(8, 16_000)))
        async for event in events:
            if event.type == 'speaking':
                break
        heard = await agent.interrupt()
        await sending
        seen['heard'] = [heard.heard_ms, heard.dropped_ms]

        rejected = asyncio.create_task(agent.wait_for('rejected'))
        await asyncio.sleep(0)
        await agent.command('gesture', gesture='wave')
        seen['rejected'] = (await rejected).data['command']

        # The socket is lost: who waits is told, and it comes back.
        await agent.speak(tone(5, 16_000))
        waiting = asyncio.create_task(agent.flush('lost'))
        await asyncio.sleep(0.1)
        await agent._socket.close()
        try:
            await waiting
        except SessionError as error:
            seen['lost'] = error.code
        seen['again'] = await agent.speak(tone(0.2, 16_000), interrupt=True)
        await agent.finish()
        seen['end'] = agent.end.reason
    try:
        await Agent(session.agent_url, reconnect=False).connect()
    except SessionError as error:
        seen['over'] = error.code
    print(json.dumps(seen), flush=True)


asyncio.run(main(*sys.argv[1:]))

"""The client of a Mouthpiece server, for the agent's side: speech, commands, events."""

from .agent import Agent, End, Event, Flushed, Heard, SessionError
from .rest import CreatedSession, RequestError, create_session, request
from .speech import Resampler, Speech

__all__ = [
    'Agent',
    'CreatedSession',
    'End',
    'Event',
    'Flushed',
    'Heard',
    'RequestError',
    'Resampler',
    'SessionError',
    'Speech',
    'create_session',
    'request',
]

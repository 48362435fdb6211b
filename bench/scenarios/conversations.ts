// What conversations cost the sessions beside them: lateness of plain sessions beside as many
// conversations, all on one thread of turns, and beside as many of their own kind instead.
import { startProviders } from '../../test/talk/provider-server.ts';
import type { TalkPlan } from '../peers/protocol.ts';
import {
  type Context,
  type Outcome,
  type Scenario,
  type Server,
  atLeast,
  atMost,
  number,
} from '../scenario.ts';
import { LATENESS_NOTE, type Lateness, inWords, latenessAfter } from './lateness.ts';
import { codecOf, settle, startFleet } from './setup.ts';

/** Two fifths speech, as faces in conversations. */
const PLAN: TalkPlan = { cycleSeconds: 10, speechSeconds: 4, pace: 'burst' };
const ANSWER = 'It is a fine day in the mountains, with a little wind from the west.';
const OWN_MS = { firstToken: 200, token: 25, voice: 120 };

/** Lateness of plain sessions beside as many others. */
async function beside(context: Context, server: Server, converses: boolean): Promise<Lateness> {
  const { options } = context;
  const set = { processes: 1, codec: codecOf(options) };
  const plain = await startFleet(context, server, set);
  const others = await startFleet(
    context,
    server,
    converses ? { ...set, converses, token: { firstMessage: ANSWER } } : set,
  );
  const ids: string[] = [];
  for (let i = 0; i < number(options, 'sessions'); i++) {
    ids.push((await plain.openPatiently(PLAN)).sessionId);
    await others.openPatiently(converses ? undefined : PLAN);
  }
  await settle(options);
  const what = converses ? 'conversations' : 'sessions';
  const found = await latenessAfter(number(options, 'hold'), server, ids, (name, ms, unit) => {
    context.record(`beside ${what}: ${name}`, ms, unit);
  });
  await Promise.all([plain.end(), others.end()]);
  context.progress(`beside ${what}: ${inWords(found)}`);
  return found;
}

async function run(context: Context): Promise<Outcome> {
  const { options } = context;
  const providers = await startProviders();
  context.defer(() => providers.close());
  const { behaviour, baseUrl, chats } = providers;
  behaviour.firstTokenMs = OWN_MS.firstToken;
  behaviour.tokenMs = OWN_MS.token;
  behaviour.voiceMs = OWN_MS.voice;
  behaviour.replies = [ANSWER];
  behaviour.transcripts = Array.from({ length: 10_000 }, () => 'please tell me more about it');
  const sessions = number(options, 'sessions');
  const server = await context.server({
    WORKERS: '1',
    MAX_WORKER_LOAD: '1',
    MAX_CONVERSATIONS: String(sessions),
    LLM_BASE_URL: baseUrl,
    LLM_MODEL: 'm',
    TTS_BASE_URL: baseUrl,
    STT_PROVIDER: 'openai',
    STT_BASE_URL: baseUrl,
  });
  const without = await beside(context, server, false);
  const beyond = await beside(context, server, true);
  const row = (name: string, { p50Ms, p99Ms, skipped }: Lateness): (string | number)[] => [
    name,
    p50Ms,
    p99Ms,
    skipped,
  ];
  return {
    figures: {
      p50Ms: beyond.p50Ms,
      p99Ms: beyond.p99Ms,
      withoutP50Ms: without.p50Ms,
      withoutP99Ms: without.p99Ms,
      skipped: beyond.skipped,
      turns: chats.length,
    },
    bounds: [
      atMost(
        'p99 lateness of plain sessions beyond what as many of their own kind cost',
        beyond.p99Ms - without.p99Ms,
        number(options, 'beyond'),
        'ms',
      ),
      atLeast('turns that the model answered', chats.length, sessions),
    ],
    tables: [
      {
        title: `${sessions} plain sessions and ${sessions} others on one worker`,
        columns: ['others', 'late p50 ms', 'late p99 ms', 'skipped'],
        rows: [row('sessions', without), row('conversations', beyond)],
      },
    ],
    plots: [],
    notes: [LATENESS_NOTE],
  };
}

export const conversations: Scenario = {
  name: 'conversations',
  about: 'Lateness of plain sessions beside conversations, which share one thread of turns.',
  options: { codec: 'vp8', sessions: 8, settle: 4, hold: 40, beyond: 5 },
  small: { sessions: 1, settle: 1, hold: 9, beyond: 250 },
  run,
};

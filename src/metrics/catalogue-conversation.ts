// Metrics of the catalogue: conversations and their providers.
import { counter, gauge, histogram } from './metric-family.ts';

const TURN_BUCKETS = [0.02, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 0.9, 1.2, 2, 4, 8];
const SILENCE_BUCKETS = [0.1, 0.2, 0.3, 0.45, 0.6, 1, 2];
const PROVIDERS = {
  role: ['language_model', 'voice', 'recogniser'],
  kind: ['chat', 'script', 'openai', 'elevenlabs', 'cartesia', 'deepgram', 'local'],
} as const;

/** Metrics of conversations. */
export const CONVERSATION_METRICS = {
  // ── conversations ──────────────────────────────────────────────────────────────────────────────
  mouthpiece_conversations: gauge('front', 'Conversations now.'),
  mouthpiece_conversation_turn_seconds: histogram(
    'front',
    'Steps of a turn: end of speech to its text (the wait for the end of the turn is part of it), ' +
      'to the first token of the reply, to its first clause, to the first audio of its voice, to ' +
      'its first packet; total is from the end of speech to that packet.',
    TURN_BUCKETS,
    { step: ['transcript', 'first_token', 'first_clause', 'first_audio', 'lips', 'total'] },
  ),
  mouthpiece_conversation_barge_in_seconds: histogram(
    'front',
    'Time from the detection of speech over the voice to its silence.',
    SILENCE_BUCKETS,
  ),
  mouthpiece_provider_answer_seconds: histogram(
    'front',
    'Time from a request to a provider to the first part of its answer.',
    TURN_BUCKETS,
    PROVIDERS,
  ),
  mouthpiece_provider_faults_total: counter(
    'front',
    'Requests to providers that failed, after their repetition.',
    {
      ...PROVIDERS,
      reason: [
        'unauthorised',
        'rate_limited',
        'refused',
        'server_error',
        'timeout',
        'unreachable',
        'cut_off',
        'malformed',
      ],
    },
  ),
  mouthpiece_conversation_tokens_total: counter('front', 'Tokens that language models sent.'),
  mouthpiece_conversation_voice_seconds_total: counter('front', 'Speech that voices sent.'),
  mouthpiece_talk_restarts_total: counter(
    'front',
    'Threads of conversations that ended by themselves, or hung.',
  ),
} as const;

// Dashboard: conversations, from the end of what a person says to the first word of the reply.
import {
  buckets,
  heatmap,
  metric,
  quantile,
  quantiles,
  rate,
  rising,
  sumBy,
  timeseries,
  type Dashboard,
} from '../panels.ts';

/** The dashboard of conversations and their providers. */
export const conversations: Dashboard = {
  uid: 'mouthpiece-conversations',
  title: 'Mouthpiece: conversations',
  about: 'Turns of conversations by step, interruptions, and the providers of speech and language.',
  rows: [
    {
      title: 'Turns',
      panels: [
        heatmap(
          'End of speech to reply',
          's',
          'Each turn: time from the end of what the person says to the first packet of the reply.',
          buckets('mouthpiece_conversation_turn_seconds', 'step="total"'),
        ),
        timeseries(
          'Steps of a turn',
          's',
          'Median of each step. The wait for the end of the turn, 0.3 s, is part of "transcript".',
          [
            {
              expr: quantile(0.5, 'mouthpiece_conversation_turn_seconds', 'step'),
              legend: '{{step}}',
            },
          ],
          { width: 6, height: 8, min: 0 },
        ),
        timeseries(
          'Interruption to silence',
          's',
          'From the detection of speech over the voice to its silence.',
          quantiles('mouthpiece_conversation_barge_in_seconds', [0.5, 0.99]),
          { width: 6, height: 8, thresholds: rising(0.45, 0.6), min: 0 },
        ),
        timeseries(
          'Conversations',
          'short',
          'Conversations now, and threads of conversations that had to be replaced in the last hour.',
          [
            { expr: sumBy('', metric('mouthpiece_conversations')), legend: 'conversations' },
            {
              expr: sumBy('', `increase(${metric('mouthpiece_talk_restarts_total')}[1h])`),
              legend: 'threads replaced',
            },
          ],
          { width: 6, min: 0 },
        ),
      ],
    },
    {
      title: 'Providers',
      panels: [
        timeseries(
          'First answer',
          's',
          '95th percentile of the time to the first part of an answer, by provider.',
          [
            {
              expr: quantile(0.95, 'mouthpiece_provider_answer_seconds', 'role, kind'),
              legend: '{{role}}, {{kind}}',
            },
          ],
          { width: 8, min: 0 },
        ),
        timeseries(
          'Faults',
          'ops',
          'Requests that failed after their repetition, by reason.',
          [
            {
              expr:
                `${sumBy('role, kind, reason', rate('mouthpiece_provider_faults_total'))} > 0 ` +
                'or vector(0)',
              legend: '{{role}} {{kind}}: {{reason}}',
            },
          ],
          { width: 8, min: 0 },
        ),
        timeseries(
          'Use',
          'short',
          'Tokens of language models and seconds of voice, a second: what providers charge for.',
          [
            {
              expr: sumBy('', rate('mouthpiece_conversation_tokens_total')),
              legend: 'tokens',
            },
            {
              expr: sumBy('', rate('mouthpiece_conversation_voice_seconds_total')),
              legend: 'seconds of voice',
            },
          ],
          { width: 8, min: 0 },
        ),
      ],
    },
  ],
};

// The figures of conversations, as metrics.
import type { FromTalk } from '../../link/talk-messages.ts';
import type { Metrics } from '../../metrics/metrics.ts';

/** Takes what conversations tell, and their number. */
export interface ConversationMeter {
  receive(message: Extract<FromTalk, { sessionId: string | undefined }>): void;
  lost(): void;
  watch(count: () => number): void;
}

/** The meter of this server. */
export function createConversationMeter(metrics: Metrics): ConversationMeter {
  const name = 'mouthpiece_conversation_turn_seconds';
  const steps = {
    transcriptMs: metrics.histogram(name, { step: 'transcript' }),
    firstTokenMs: metrics.histogram(name, { step: 'first_token' }),
    firstClauseMs: metrics.histogram(name, { step: 'first_clause' }),
    firstAudioMs: metrics.histogram(name, { step: 'first_audio' }),
    lipsMs: metrics.histogram(name, { step: 'lips' }),
    totalMs: metrics.histogram(name, { step: 'total' }),
  };
  const bargeIn = metrics.histogram('mouthpiece_conversation_barge_in_seconds');
  const tokens = metrics.counter('mouthpiece_conversation_tokens_total');
  const voice = metrics.counter('mouthpiece_conversation_voice_seconds_total');
  const restarts = metrics.counter('mouthpiece_talk_restarts_total');
  const conversations = metrics.gauge('mouthpiece_conversations');
  return {
    receive(message) {
      switch (message.type) {
        case 'turn':
          for (const step of Object.keys(steps) as (keyof typeof steps)[]) {
            steps[step].observe(message.times[step] / 1000);
          }
          return;
        case 'bargeIn':
          bargeIn.observe(message.silenceMs / 1000);
          return;
        case 'provider': {
          const { role, kind, seconds } = message;
          metrics.histogram('mouthpiece_provider_answer_seconds', { role, kind }).observe(seconds);
          return;
        }
        case 'fault':
          metrics
            .counter('mouthpiece_provider_faults_total', {
              role: message.role,
              kind: message.kind,
              reason: message.fault,
            })
            .add();
          return;
        case 'usage':
          tokens.add(message.tokens);
          voice.add(message.voiceSeconds);
          return;
        default:
      }
    },
    lost() {
      restarts.add();
    },
    watch(count) {
      metrics.onScrape(() => {
        conversations.set(count());
      });
    },
  };
}

// Micro-benchmark of the audio front end: log-mel features, one step a session, and the articulation
// model at several batch sizes.
import { speechSamplesInStep } from '../../src/media/timeline.ts';
import { native } from '../../src/native/addon.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { measure, report } from '../harness.ts';
import type { BenchCase } from '../harness.ts';

const pcm = Int16Array.from(
  { length: 16_000 },
  (_, i) => 6000 * Math.sin(i * 0.06) * Math.sin(i * 0.0019) + 1500 * Math.sin(i * 0.93),
);
const mel = new native.MelFrontEnd();
const features = new Float32Array(120);

report(
  'features of one video frame of speech (budget: well under 0.02 ms)',
  await measure([
    {
      name: 'mel step',
      run: (round) => {
        const start = (round % 29) * 534;
        mel.step(pcm.subarray(start, start + 534), speechSamplesInStep(round), features, 0);
        return features[17]!;
      },
    },
  ]),
);

const model = await SpeechModel.load({ maxBatch: 32 });

function modelCase(sessions: number): BenchCase {
  const slots = Array.from({ length: sessions }, () => model.createState());
  for (const [i, slot] of slots.entries()) {
    slot.mel.forEach((_, k) => {
      slot.mel[k] = Math.abs(Math.sin(i * 7 + k));
    });
  }
  return {
    name: `model, ${sessions} sessions`,
    items: sessions,
    run: async () => {
      await model.run(slots);
      return slots[0]!.articulation[0]!;
    },
  };
}

report(
  'speech to articulation, one step of one session in a batch (budget at 16: 0.15 ms)',
  await measure([1, 4, 16, 32].map(modelCase), { budgetMs: 3000 }),
);
await model.close();

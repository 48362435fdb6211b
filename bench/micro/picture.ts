// What a moving face costs from articulation to coded frame, silent and speaking: share of
// macroblocks drawn again, rendering, encoding, bitrate, and what the receiver sees, against pictures
// that are drawn as a whole. The same with a head that is still, and what motion adds to render and
// encode. `npm run node -- bench/micro/picture.ts [face...] [--kbps 600] [--motion natural]`, faces
// from models/faces; default ava.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import type { VideoCodec } from '../../src/media/coded-frame.ts';
import { ARTICULATION_SIZE, type Motion, MOTIONS } from '../../src/media/articulation.ts';
import { decodeFaceAsset } from '../../src/media/face-asset.ts';
import { FPS, speechSamplesInStep } from '../../src/media/timeline.ts';
import { createFace } from '../../src/jobs/face/create-face.ts';
import { KEY_FRAME_BIT, native } from '../../src/native/addon.ts';
import { SpeechModel } from '../../src/pipeline/inference/speech-model.ts';
import { RigRenderer } from '../../src/pipeline/render/rig-renderer.ts';
import { decode, psnr } from '../../test/native/decode.ts';
import { benchSpeech } from '../scenarios/setup.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const LEAD = 45,
  FRAMES = 300,
  ENCODERS = 6;
/** The key frame and its refinement are not what a session is made of. */
const SETTLED = 90;

interface Clip {
  readonly pictures: Uint8Array[];
  readonly maps: Uint8Array[];
  readonly motions: Int16Array[];
  readonly renderMs: number;
  readonly dirtyShare: number;
  readonly quietFrames: number;
}

async function articulations(): Promise<Float32Array[]> {
  const { file } = await benchSpeech();
  const bytes = readFileSync(file);
  const pcm = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  const model = await SpeechModel.load();
  const [mel, slot] = [new native.MelFrontEnd(), model.createState()];
  const out: Float32Array[] = [];
  for (let step = 0, at = 0; step < LEAD + FRAMES; step++) {
    const count = speechSamplesInStep(step);
    mel.step(pcm.subarray(at, at + count), count, slot.mel, 0);
    at += count;
    await model.run([slot]);
    out.push(slot.articulation.slice());
  }
  await model.close();
  return out;
}

function record(
  asset: InstanceType<typeof native.FaceAsset>,
  seed: number,
  spoken: readonly Float32Array[] | undefined,
  motion: Motion,
  mayShift: boolean,
): Clip {
  const stage = new RigRenderer(asset, { seed, emotion: 0, startFrame: 0, motion });
  stage.mayShift = mayShift;
  const silence = new Float32Array(ARTICULATION_SIZE);
  const clip = {
    pictures: [] as Uint8Array[],
    maps: [] as Uint8Array[],
    motions: [] as Int16Array[],
  };
  let [renderMs, dirty, quiet] = [0, 0, 0];
  for (let frame = 0; frame < LEAD + FRAMES; frame++) {
    const startMs = native.threadCpuMs();
    stage.draw(frame, spoken?.[frame] ?? silence, spoken !== undefined);
    if (frame < LEAD) {
      continue;
    }
    renderMs += native.threadCpuMs() - startMs;
    clip.pictures.push(stage.picture.slice());
    clip.maps.push(stage.dirty.slice());
    clip.motions.push(stage.motion.slice());
    const share = stage.dirty.filter((change) => change === 1).length / stage.dirty.length;
    dirty += share;
    if (share < 0.1) {
      quiet++;
    }
  }
  return {
    ...clip,
    renderMs: renderMs / FRAMES,
    dirtyShare: dirty / FRAMES,
    quietFrames: quiet / FRAMES,
  };
}

interface Coded {
  readonly ms: number;
  readonly kbps: number;
  readonly whole: number;
  readonly head: number;
  readonly mouth: number;
  readonly worst: number;
}

function encode(
  codec: VideoCodec,
  kbps: number,
  { pictures, maps, motions }: Clip,
  whole: readonly Uint8Array[],
  side: number,
  head: Rect,
  mouth: Rect,
): Coded {
  const options = { codec, width: side, height: side, fps: FPS, bitrateKbps: kbps };
  const encoders = Array.from({ length: ENCODERS }, () => new native.VideoEncoder(options));
  const out = new Uint8Array(1 << 18);
  const frames: Uint8Array[] = [];
  let [ms, bytes] = [0, 0];
  for (const [i, picture] of pictures.entries()) {
    const startMs = native.threadCpuMs();
    for (const [k, encoder] of encoders.entries()) {
      const length = encoder.encode(picture, out, false, maps[i]!, motions[i]) & ~KEY_FRAME_BIT;
      if (k === 0) {
        frames.push(out.slice(0, length));
      }
    }
    if (i < SETTLED) {
      continue;
    }
    ms += native.threadCpuMs() - startMs;
    bytes += frames.at(-1)!.length;
  }
  for (const encoder of encoders) {
    encoder.close();
  }
  const decoded = decode(codec, frames, side, side);
  const count = pictures.length - SETTLED;
  const quality = (rect: Rect): number[] =>
    decoded
      .slice(SETTLED)
      .map((picture, i) => psnr(picture, whole[SETTLED + i]!, side, side, rect));
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const heads = quality(head);
  return {
    ms: ms / count / ENCODERS,
    kbps: (bytes * 8 * FPS) / 1000 / count,
    whole: mean(quality([0, 0, side, side])),
    head: mean(heads),
    mouth: mean(quality(mouth)),
    worst: Math.min(...heads),
  };
}

type Rect = readonly [left: number, top: number, right: number, bottom: number];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kbps: { type: 'string', default: '600' },
    seed: { type: 'string', default: '1' },
    motion: { type: 'string', default: 'natural' },
  },
});
const chosen = MOTIONS.find((motion) => motion === values.motion);
if (!chosen) {
  throw new Error(`--motion is one of ${MOTIONS.join(', ')}`);
}
const spoken = await articulations();
for (const name of positionals.length > 0 ? positionals : ['ava']) {
  const { asset: bytes } = await createFace(
    readFileSync(path.join(ROOT, `models/faces/${name}.webp`)),
    { name },
  );
  const { landmarks, width } = decodeFaceAsset(bytes);
  const box = (points: readonly number[], margin: number): Rect => {
    const [xs, ys] = [
      points.map((i) => landmarks[i * 3]!),
      points.map((i) => landmarks[i * 3 + 1]!),
    ];
    return [
      Math.floor(Math.min(...xs) - margin),
      Math.floor(Math.min(...ys) - margin),
      Math.ceil(Math.max(...xs) + margin),
      Math.ceil(Math.max(...ys) + margin),
    ];
  };
  const [head, mouth] = [box([10, 152, 234, 454], 10), box([61, 291, 0, 17], 16)];
  const asset = new native.FaceAsset(bytes);
  for (const [state, sound] of [
    ['idle', undefined],
    ['speaking', spoken],
  ] as const) {
    const still: Record<string, number> = {};
    for (const motion of chosen === 'none' ? [chosen] : (['none', chosen] as const)) {
      const line: Record<string, unknown> = { face: name, state, motion };
      const whole = record(asset, Number(values.seed), sound, motion, false);
      for (const codec of ['vp8', 'h264'] as const) {
        const clip =
          codec === 'vp8' ? record(asset, Number(values.seed), sound, motion, true) : whole;
        const coded = encode(codec, Number(values.kbps), clip, whole.pictures, width, head, mouth);
        const { dirtyShare, quietFrames, renderMs } = clip;
        line[codec] = { dirtyShare, quietFrames, renderMs, ...coded };
        const ms = renderMs + coded.ms;
        const before = still[codec];
        still[codec] ??= ms;
        console.error(
          `${name} ${state}, motion ${motion}, ${codec}: ${(100 * dirtyShare).toFixed(1)} % of the ` +
            `macroblocks drawn, ${(100 * quietFrames).toFixed(0)} % of the frames below a tenth\n` +
            `  render ${renderMs.toFixed(3)} ms  encode ${coded.ms.toFixed(3)} ms  ` +
            `${coded.kbps.toFixed(0)} kbit/s  ` +
            `PSNR ${coded.whole.toFixed(1)} face ${coded.head.toFixed(1)} ` +
            `(worst ${coded.worst.toFixed(1)}) mouth ${coded.mouth.toFixed(1)} dB` +
            (before ? `; together ${(ms / before).toFixed(2)} of a still head` : ''),
        );
      }
      process.stdout.write(`${JSON.stringify(line)}\n`);
    }
  }
}

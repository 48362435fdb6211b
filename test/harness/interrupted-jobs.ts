// A static video and a face whose server is killed amid them.
import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { keys } from '../../src/front/store/keys.ts';
import { frameCount, segmentCount, segmentName } from '../../src/jobs/video/hls.ts';
import { patience } from './machine.ts';
import { makeFace } from './make-face.ts';
import { type TestServer, call } from './server.ts';
import { until } from './until.ts';

type Target = Pick<TestServer, 'url' | 'apiKey'>;

const RATE = 16_000;
/** Sound of the video: it is still rendered when the face is begun, and its server is killed. */
const SECONDS = 24;
const LIMIT_MS = 60_000;

/** The jobs, one in each queue, and who holds them, as Redis has it. */
export class InterruptedJobs {
  readonly #videoId: string;
  readonly #faceId: string;
  readonly #redis: Redis;

  private constructor(redisUrl: string, videoId: string, faceId: string) {
    this.#redis = new Redis(redisUrl);
    this.#videoId = videoId;
    this.#faceId = faceId;
  }

  /**
   * Asks a server for both, again if need be: another server may look for work just then and take
   * one of them. It works on both, and some of the video is there, when this resolves.
   */
  static async begin(server: Target, serverId: string, redisUrl: string): Promise<InterruptedJobs> {
    for (let attempt = 0; attempt < 5; attempt++) {
      const jobs = await InterruptedJobs.#ask(server, redisUrl);
      if ((await jobs.#holders()).every((holder) => holder === serverId)) {
        return jobs;
      }
      jobs.#redis.disconnect();
    }
    throw new Error('one of the jobs was always taken by another server, or done too early');
  }

  static async #ask(server: Target, redisUrl: string): Promise<InterruptedJobs> {
    const sound = Int16Array.from({ length: SECONDS * RATE }, (_, i) => 8000 * Math.sin(i / 10));
    const video = await call(server, '/static/audio', {
      faceId: 'ava',
      audioBase64: Buffer.from(sound.buffer).toString('base64'),
    });
    assert.equal(video.status, 200, JSON.stringify(video.body));
    const isBegun = async (): Promise<boolean> => {
      const { status, progress } = (await call(server, `/static/status?id=${video.body.id}`)).body;
      assert.ok(['queued', 'rendering', 'completed'].includes(status), status);
      return progress > 0;
    };
    await until(isBegun, LIMIT_MS, 'some of the video is rendered');
    const face = await makeFace(server);
    assert.equal(face.status, 202, JSON.stringify(face.body));
    const jobs = new InterruptedJobs(redisUrl, video.body.id, face.body.id);
    const isTaken = async (): Promise<boolean> => {
      const [, holder] = await jobs.#holders();
      const { status } = (await call(server, `/faces/${face.body.id}`)).body;
      return !!holder || status === 'completed';
    };
    await until(isTaken, LIMIT_MS, 'a server works on the face');
    return jobs;
  }

  /** @returns when another server had taken the last of them, as performance.now() */
  async takenFrom(serverId: string): Promise<number> {
    const isTaken = async (): Promise<boolean> =>
      (await this.#holders()).every((holder) => holder !== serverId);
    await until(isTaken, LIMIT_MS, 'another server takes them');
    return performance.now();
  }

  /**
   * Waits until both are done, as a server tells it, and looks at all files of the video.
   * @returns when they were done, as performance.now()
   */
  async done(server: Target): Promise<number> {
    const isDone = async (): Promise<boolean> => {
      const video = (await call(server, `/static/status?id=${this.#videoId}`)).body;
      const face = (await call(server, `/faces/${this.#faceId}`)).body;
      assert.ok(![video.status, face.status].includes('failed'), JSON.stringify([video, face]));
      return video.status === 'completed' && face.status === 'completed';
    };
    // Jobs have the lowest priority: beside other tests they wait for a core.
    await until(isDone, LIMIT_MS * patience(), 'they are done');
    const doneMs = performance.now();
    this.#redis.disconnect();
    assert.equal((await call(server, `/faces/${this.#faceId}/preview`)).status, 200);
    const get = async (file: string): Promise<Buffer> => {
      const response = await fetch(`${server.url}/static/${file}`);
      assert.equal(response.status, 200, file);
      return Buffer.from(await response.arrayBuffer());
    };
    const playlist = (await get(`hls/${this.#videoId}/output.m3u8`)).toString();
    const segments = segmentCount(frameCount(SECONDS * RATE, RATE));
    assert.equal([...playlist.matchAll(/^#EXTINF:/gm)].length, segments, playlist);
    assert.match(playlist, /#EXT-X-ENDLIST\s*$/);
    for (let index = 0; index < segments; index++) {
      assert.ok((await get(`hls/${this.#videoId}/${segmentName(index)}`)).includes('mdat'));
    }
    const mp4 = await get(`mp4/${this.#videoId}/output.mp4`);
    assert.ok(mp4.includes('moov') && mp4.includes('mdat'), `${mp4.length} bytes`);
    return doneMs;
  }

  #holders(): Promise<(string | null)[]> {
    return Promise.all([
      this.#redis.hget(keys.jobsHolders('static'), this.#videoId),
      this.#redis.hget(keys.jobsHolders('face'), this.#faceId),
    ]);
  }
}

// The routes of static videos: they validate requests, call the service, and serve the finished
// files.
import { z } from 'zod';
import { ServiceError } from '../../base/errors.ts';
import {
  AUDIO_FIELD,
  MAX_OTHER_BYTES,
  parseAudioBody,
  type AudioBody,
  type AudioBodyTask,
} from '../../jobs/parse-audio-body.ts';
import type { JobPool } from '../../jobs/job-pool.ts';
import { AudioError } from '../../jobs/video/audio/pcm-stream.ts';
import type { FileSource } from '../http/file-response.ts';
import { empty, file, json, type Reply } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { invalidField, ValidationError } from '../http/validate.ts';
import { AUDIO_FORMATS, type StaticVideos } from '../videos/static-videos.ts';
import { faceIdText, fileResponses, idOf, KIB, MIB } from './field-schemas.ts';
import { chosenFace } from './compose.ts';

/** What the routes of static videos need. */
export interface StaticDeps {
  /** Undefined: the routes reply NOT_IMPLEMENTED. */
  readonly videos: StaticVideos | undefined;
  /** Of the owner, made or in the making. @throws ServiceError INVALID_FACE_ID */
  readonly requireFace: (ownerId: string, faceId: string) => Promise<unknown>;
  /** Threads that parse large bodies. Not those that render, so that no reply waits for a video. */
  readonly bodyPool: JobPool;
}

/** Audio of one video, decoded from Base64. */
const MAX_AUDIO_BYTES = 64 * MIB;
/** Base64 has 4 bytes for 3. The rest is for line breaks and the other fields. */
const MAX_BODY_BYTES = Math.ceil((MAX_AUDIO_BYTES * 4) / 3) + 2 * MIB;
/** A body up to this size is parsed on the main thread: passing it to another one takes longer. */
const INLINE_BYTES = 64 * 1024;

const audioBytes = z
  .custom<Uint8Array>(
    (value) => value instanceof Uint8Array && value.length > 0 && value.length <= MAX_AUDIO_BYTES,
    {
      error: ({ input }) => {
        if (input === undefined) {
          return 'Field required';
        }
        if (input === null) {
          return 'Input should be Base64';
        }
        if (!(input instanceof Uint8Array)) {
          return 'Input should be a Base64 string';
        }
        return input.length === 0
          ? 'The audio is empty'
          : `The audio is larger than ${MAX_AUDIO_BYTES / MIB} MiB`;
      },
    },
  )
  .meta({
    type: 'string',
    minLength: 1,
    contentEncoding: 'base64',
    description: 'The audio, Base64. At most 64 MiB and 10 minutes.',
  });

const audioRequest = z.object({
  faceId: faceIdText,
  [AUDIO_FIELD]: audioBytes,
  audioFormat: z
    .enum(AUDIO_FORMATS)
    .default('pcm16')
    .meta({ description: 'pcm16: s16le samples. pcm32: s32le samples. The others: a whole file.' }),
  audioSampleRate: z
    .int()
    .min(8000)
    .max(96_000)
    .default(16_000)
    .meta({ description: 'Hz, for pcm16 and pcm32. Files carry their own.' }),
  audioChannelCount: z.int().min(1).max(2).default(1),
  videoStartingFrame: z.int().min(0).max(1_000_000).default(0),
});

const created = z
  .object({
    id: z.string(),
    hls_url: z.url(),
    mp4_url: z.url(),
    mp4_availability_eta_seconds: z.number(),
  })
  .meta({ id: 'StaticVideo' });
const statusSchema = z
  .object({
    id: z.string(),
    status: z.enum(['queued', 'rendering', 'completed', 'failed']),
    progress: z.number().min(0).max(1),
    error: z.string().optional(),
    queue_position: z.int().optional(),
    duration_seconds: z.number().optional(),
    eta_seconds: z.number().optional(),
    hls_url: z.url(),
    mp4_url: z.url(),
  })
  .meta({ id: 'StaticStatus' });

/** One second of silence, 16 kHz mono. */
const EXAMPLE = {
  faceId: 'ava',
  audioBase64: Buffer.alloc(32_000).toString('base64'),
  audioFormat: 'pcm16',
  audioSampleRate: 16_000,
  audioChannelCount: 1,
};

const videoId = idOf('a video', '3f0c2b9e-7a51-4d0e-9f57-0a4c1de08b11');
const segmentName = z
  .string()
  .regex(/^[\w-]{1,64}\.(?:m3u8|m4s|mp4)$/)
  .meta({ description: 'Name of the file.', examples: ['output.m3u8'] });

/** Routes of POST /static/audio and of the files that it makes. */
export function staticRoutes({ videos, requireFace, bodyPool }: StaticDeps): Route[] {
  const render = (): StaticVideos => {
    if (!videos) {
      throw new ServiceError('NOT_IMPLEMENTED', 'Static video is not served yet.');
    }
    return videos;
  };
  const idParams = z.object({ id: videoId });
  return [
    route({
      method: 'POST',
      path: '/static/audio',
      tag: 'Static video',
      auth: 'key',
      summary: 'Make a video of a face that speaks an audio sample',
      aliases: [{ method: 'POST', path: '/audioToVideoStream' }],
      body: {
        kind: 'json',
        schema: audioRequest,
        limitBytes: MAX_BODY_BYTES,
        parse: (chunks) => parseLargeBody(chunks, bodyPool),
        example: EXAMPLE,
      },
      responses: {
        200: {
          description: 'The HLS playlist can be played at once, the MP4 when it is complete.',
          schema: created,
        },
      },
      refusals: [
        'INVALID_FACE_ID',
        'INVALID_EMOTION',
        'FACE_NOT_READY',
        'QUEUE_FULL',
        'STORAGE_UNAVAILABLE',
      ],
      timeoutMs: 60_000,
      async handler({ body, caller, origin }) {
        const { faceId, emotion } = await chosenFace(body.faceId, caller.ownerId, requireFace);
        const { id, etaSeconds } = await render()
          .create({
            ownerId: caller.ownerId,
            keyId: caller.keyId,
            keyName: caller.keyName,
            faceId,
            emotion,
            audio: body.audioBase64,
            audioFormat: body.audioFormat,
            sampleRate: body.audioSampleRate,
            channelCount: body.audioChannelCount as 1 | 2,
            startFrame: body.videoStartingFrame,
          })
          .catch((error: unknown) => {
            if (error instanceof AudioError) {
              throw invalidField('body', AUDIO_FIELD, error.message, 'audio_invalid');
            }
            throw error;
          });
        return json({ id, ...urls(origin, id), mp4_availability_eta_seconds: etaSeconds });
      },
    }),
    route({
      method: 'GET',
      path: '/static/status',
      tag: 'Static video',
      auth: 'none',
      summary: 'Progress of a rendering. Whoever knows the id may ask',
      query: z.object({ id: videoId }),
      responses: { 200: { description: 'Its state.', schema: statusSchema } },
      refusals: ['NOT_FOUND', 'STORE_UNAVAILABLE'],
      async handler({ query, origin }) {
        const found = await render().status(query.id);
        if (!found) {
          throw noSuchVideo();
        }
        const { queuePosition, durationSeconds, etaSeconds, ...rest } = found;
        return json(
          {
            id: query.id,
            ...rest,
            ...urls(origin, query.id),
            ...(queuePosition === undefined ? {} : { queue_position: queuePosition }),
            ...(durationSeconds === undefined ? {} : { duration_seconds: durationSeconds }),
            ...(etaSeconds === undefined ? {} : { eta_seconds: etaSeconds }),
          },
          200,
          { 'cache-control': 'no-store' },
        );
      },
    }),
    route({
      method: 'GET',
      path: '/static/hls/{id}/{file}',
      tag: 'Static video',
      auth: 'none',
      summary: 'The HLS playlist output.m3u8 and its segments',
      params: z.object({ id: videoId, file: segmentName }),
      aliases: [{ method: 'GET', path: '/hls/{id}/{file}' }],
      responses: {
        200: { description: 'The file.', contentType: CONTENT_TYPES.m3u8 },
        ...fileResponses(CONTENT_TYPES.m4s),
        302: LINKED,
      },
      refusals: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'STORE_UNAVAILABLE', 'STORAGE_UNAVAILABLE'],
      timeoutMs: 60_000,
      async handler({ params }) {
        const source = await render().openHls(params.id, params.file);
        if (!source) {
          throw new ServiceError(
            'NOT_FOUND',
            'There is no such file: the id is unknown, the video expired, or this part is not ' +
              'rendered yet. See GET /static/status.',
          );
        }
        const playlist = params.file.endsWith('.m3u8');
        return await fileOrLink(
          source,
          CONTENT_TYPES[params.file.split('.')[1] as keyof typeof CONTENT_TYPES],
          playlist ? 'no-cache' : 'public, max-age=3600, immutable',
        );
      },
    }),
    route({
      method: 'GET',
      path: '/static/mp4/{id}/output.mp4',
      tag: 'Static video',
      auth: 'none',
      summary: 'The finished MP4',
      params: idParams,
      aliases: [{ method: 'GET', path: '/mp4/{id}/output.mp4' }],
      responses: {
        200: { description: 'The file.', contentType: CONTENT_TYPES.mp4 },
        ...fileResponses(CONTENT_TYPES.mp4),
        302: LINKED,
      },
      refusals: ['NOT_FOUND', 'RANGE_NOT_SATISFIABLE', 'STORAGE_UNAVAILABLE'],
      async handler({ params }) {
        const source = await render().openMp4(params.id);
        if (!source) {
          throw new ServiceError(
            'NOT_FOUND',
            'There is no such file: the id is unknown, the video expired, or it is not finished. ' +
              'See GET /static/status.',
          );
        }
        return await fileOrLink(source, CONTENT_TYPES.mp4, 'public, max-age=3600, immutable');
      },
    }),
    shortcut('hls', 'output.m3u8'),
    shortcut('mp4', 'output.mp4'),
  ];
}

/** The file, or a redirect to a URL of the storage that is signed for an hour. */
async function fileOrLink(
  source: FileSource,
  contentType: string,
  cacheControl: string,
): Promise<Reply> {
  if (source.link === undefined) {
    return file(source, contentType, cacheControl);
  }
  try {
    return empty(302, { location: await source.link(), 'cache-control': 'no-store' });
  } finally {
    await source.close();
  }
}

/** The short form of a path, with the id in the query: a redirect. */
function shortcut(kind: 'hls' | 'mp4', fileName: string): Route {
  return route({
    method: 'GET',
    path: `/static/${kind}`,
    tag: 'Static video',
    auth: 'none',
    summary: `Redirects to /static/${kind}/{id}/${fileName}`,
    aliases: [{ method: 'GET', path: `/${kind}` }],
    query: z.object({ id: videoId }),
    responses: { 302: { description: 'To the file.' } },
    handler: ({ query }) =>
      empty(302, { location: `/static/${kind}/${encodeURIComponent(query.id)}/${fileName}` }),
  });
}

const LINKED = {
  description: 'To the storage of the server, by a URL that is signed for an hour.',
};

const CONTENT_TYPES = {
  m3u8: 'application/vnd.apple.mpegurl',
  m4s: 'video/iso.segment',
  mp4: 'video/mp4',
} as const;

const urls = (origin: string, id: string) => ({
  hls_url: `${origin}/static/hls/${id}/output.m3u8`,
  mp4_url: `${origin}/static/mp4/${id}/output.mp4`,
});

const noSuchVideo = (): ServiceError =>
  new ServiceError(
    'NOT_FOUND',
    'There is no such video: the id is unknown, or the video expired. Make it again with POST /static/audio.',
  );

/** Parses the body, a large one on another thread. @throws ValidationError */
async function parseLargeBody(
  chunks: readonly Uint8Array<ArrayBuffer>[],
  pool: JobPool,
): Promise<unknown> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  const task: AudioBodyTask = { chunks, fields: Object.keys(audioRequest.shape) };
  const parsed =
    length <= INLINE_BYTES
      ? parseAudioBody(task)
      : await pool.run<AudioBody>('audioBody', task, {
          timeoutMs: 30_000,
          transfer: chunks.map(({ buffer }) => buffer),
        });
  switch (parsed.kind) {
    case 'value':
      return parsed.value;
    case 'too-much':
      throw bodyIssue(
        `Without the audio, the body is larger than ${MAX_OTHER_BYTES / KIB} KiB or holds too ` +
          'many values; send only the fields of this path',
        'too_large',
      );
    default:
      throw bodyIssue(
        length === 0 ? 'The body is empty; send a JSON object' : 'The body is not valid JSON',
      );
  }
}

const bodyIssue = (msg: string, type = 'json_invalid'): ValidationError =>
  new ValidationError([{ loc: ['body'], msg, type }]);

// The service of static videos as the routes see it: requests, status, and access to the files.
import type { FileSource } from '../http/file-response.ts';

/** Audio formats that a request may have. */
export const AUDIO_FORMATS = ['pcm16', 'pcm32', 'wav', 'mp3', 'ogg'] as const;
/** One of AUDIO_FORMATS. */
export type AudioFormat = (typeof AUDIO_FORMATS)[number];

/** A validated request for a static video. */
export interface StaticRequest {
  readonly ownerId: string;
  readonly keyId: string;
  readonly keyName: string;
  readonly faceId: string;
  readonly emotion: string;
  /** The audio, decoded from Base64. In shared memory when it is large. */
  readonly audio: Uint8Array;
  readonly audioFormat: AudioFormat;
  /** Hz, for pcm16 and pcm32. Other formats carry their own. */
  readonly sampleRate: number;
  /** Of pcm16 and pcm32; samples of two channels are interleaved. */
  readonly channelCount: 1 | 2;
  /** Frame of the idle motion at which the video starts. */
  readonly startFrame: number;
}

/** The state of a rendering. */
export interface StaticStatus {
  readonly status: 'queued' | 'rendering' | 'completed' | 'failed';
  /** 0 to 1. */
  readonly progress: number;
  readonly error?: string;
  /** 1 is the next one. Only while queued. */
  readonly queuePosition?: number;
  readonly durationSeconds?: number;
  readonly etaSeconds?: number;
}

/** Renders static videos and gives access to their files. */
export interface StaticVideos {
  /**
   * Inspects the audio and queues the rendering.
   * @throws AudioError when the audio cannot be used; ServiceError QUEUE_FULL or FACE_NOT_READY
   */
  create(request: StaticRequest): Promise<{ readonly id: string; readonly etaSeconds: number }>;
  /** Undefined when the id is unknown or the video expired. */
  status(id: string): Promise<StaticStatus | undefined>;
  /**
   * Opens the playlist `output.m3u8`, the initialisation segment or a media segment; undefined
   * while it does not exist.
   */
  openHls(id: string, name: string): Promise<FileSource | undefined>;
  /** Opens the MP4; undefined until it is complete. */
  openMp4(id: string): Promise<FileSource | undefined>;
}

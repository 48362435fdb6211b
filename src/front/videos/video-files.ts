// The files of a static video in the blob store: the uploaded audio, the HLS playlist with its
// segments, and the MP4.
import {
  INIT_NAME,
  PLAYLIST_NAME,
  playlist,
  segmentCount,
  segmentName,
} from '../../jobs/video/hls.ts';
import type { BlobReader, BlobStore } from '../store/blobs.ts';

const ROOT = 'static';
const HLS_NAME = /^(?:output\.m3u8|init\.mp4|segment-\d{4,5}\.m4s)$/;
/** The form of `newUuid`. Nothing else can name a folder. */
const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Whether it can be the id of a video. */
export const isVideoId = (id: string): boolean => ID.test(id);

/** The files of all static videos, by id. */
export class StaticFiles {
  readonly #blobs: BlobStore;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  putUpload(id: string, audio: Uint8Array): Promise<void> {
    return this.#blobs.put(uploadKey(id), audio);
  }
  getUpload(id: string): Promise<Buffer | undefined> {
    return this.#blobs.get(uploadKey(id));
  }
  deleteUpload(id: string): Promise<void> {
    return this.#blobs.delete(uploadKey(id));
  }

  /** An HLS file; undefined while it does not exist, and for any other name. */
  async openHls(id: string, name: string): Promise<BlobReader | undefined> {
    return isVideoId(id) && HLS_NAME.test(name)
      ? await this.#blobs.open(hlsKey(id, name))
      : undefined;
  }

  /** The MP4; undefined while it does not exist. */
  async openMp4(id: string): Promise<BlobReader | undefined> {
    return isVideoId(id) ? await this.#blobs.open(mp4Key(id)) : undefined;
  }

  /** Where the renderer writes the MP4. */
  mp4Draft(id: string): Promise<string> {
    return this.#blobs.draft(mp4Key(id));
  }
  /** Whether the rendering was finished: the MP4 is the last file to be put in its place. */
  async isWhole(id: string): Promise<boolean> {
    return (await this.#blobs.stat(mp4Key(id))) !== undefined;
  }

  /** Whether every file of a finished video still exists: something else may have deleted them. */
  async hasAll(id: string, frames: number): Promise<boolean> {
    if (!(await this.isWhole(id))) {
      return false;
    }
    const names = new Set(await this.#blobs.list(`${ROOT}/${id}/hls`));
    if (!names.has(PLAYLIST_NAME) || !names.has(INIT_NAME)) {
      return false;
    }
    for (let index = 0; index < segmentCount(frames); index++) {
      if (!names.has(segmentName(index))) {
        return false;
      }
    }
    return true;
  }

  /** Puts the finished draft in its place. */
  async adoptMp4(id: string): Promise<void> {
    await this.#blobs.adopt(mp4Key(id), await this.mp4Draft(id));
  }

  /**
   * Publishes the pieces of a rendering in order. It keeps those of an earlier run: players may
   * have them, and a rendering is the same each time.
   */
  async publisher(id: string, frames: number): Promise<Publisher> {
    const text = (await this.#blobs.get(hlsKey(id, PLAYLIST_NAME)))?.toString() ?? '';
    return new Publisher(this.#blobs, id, frames, [...text.matchAll(/^#EXTINF:/gm)].length);
  }

  /** Deletes all files of a video. */
  async delete(id: string): Promise<void> {
    await this.#blobs.delete(`${ROOT}/${id}`);
  }

  /** Ids of all videos that have any file. */
  async list(): Promise<string[]> {
    return (await this.#blobs.list(ROOT)).filter(isVideoId);
  }
}

/** Stores the HLS files of one video as they are rendered. */
export class Publisher {
  /** Segments that can be fetched. */
  published: number;
  readonly #blobs: BlobStore;
  readonly #id: string;
  readonly #frames: number;

  constructor(blobs: BlobStore, id: string, frames: number, published: number) {
    this.#blobs = blobs;
    this.#id = id;
    this.#frames = frames;
    this.published = published;
  }

  /** Stores the initialization segment. */
  async init(bytes: Uint8Array): Promise<void> {
    if (this.published === 0) {
      await this.#blobs.put(hlsKey(this.#id, INIT_NAME), bytes);
    }
  }

  /**
   * Stores a segment, then the playlist that names it.
   * @returns false when an earlier run stored it
   */
  async segment(index: number, bytes: Uint8Array): Promise<boolean> {
    if (index < this.published) {
      return false;
    }
    await this.#blobs.put(hlsKey(this.#id, segmentName(index)), bytes);
    await this.#blobs.put(
      hlsKey(this.#id, PLAYLIST_NAME),
      Buffer.from(playlist(this.#frames, index + 1)),
    );
    this.published = index + 1;
    return true;
  }
}

const uploadKey = (id: string): string => `${ROOT}/${id}/upload`;
const mp4Key = (id: string): string => `${ROOT}/${id}/output.mp4`;
const hlsKey = (id: string, name: string): string => `${ROOT}/${id}/hls/${name}`;

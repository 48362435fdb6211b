// The settings of the storage of faces and videos. Read by config.ts.
import path from 'node:path';
import type { StorageOptions } from './front/store/open-storage.ts';
import { z } from 'zod';
import { flag, httpUrlWithUser, integer, setting, text } from './setting.ts';

/** The settings of S3. Credentials come from where its client looks for them. */
export const STORAGE_SETTINGS = {
  S3_BUCKET: setting(
    text,
    undefined,
    'S3 bucket of faces and static videos; servers that share a Redis share it. Credentials: ' +
      'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source that AWS clients know. Unset: ' +
      'files below DATA_DIR.',
  ),
  S3_ENDPOINT: setting(
    httpUrlWithUser,
    undefined,
    'URL of an S3 server that is not AWS (MinIO, Garage, R2). Unset: AWS.',
  ),
  S3_REGION: setting(
    text,
    undefined,
    'Region of S3_BUCKET. Unset: us-east-1 with S3_ENDPOINT; else AWS_REGION, or the AWS profile.',
  ),
  S3_PATH_STYLE: setting(
    flag,
    undefined,
    'Whether URLs have the bucket in the path instead of the host name. Unset: with S3_ENDPOINT.',
  ),
  S3_PREFIX: setting(
    text.regex(/^[\w!.*'()/-]+$/, "may have letters, digits and !-_.*'()/ only"),
    undefined,
    'What the name of every object begins with (mouthpiece/).',
  ),
  S3_DOWNLOADS: setting(
    z.enum(['proxy', 'redirect']),
    'proxy',
    'How clients get the MP4 and the HLS segments of static videos that are in S3. proxy: this ' +
      'server passes them on. redirect: to signed URLs of S3, which last an hour.',
  ),
  S3_PUBLIC_ENDPOINT: setting(
    httpUrlWithUser,
    undefined,
    'URL at which clients reach the S3 server, for S3_DOWNLOADS=redirect. Unset: S3_ENDPOINT.',
  ),
  S3_CACHE_MEGABYTES: setting(
    integer(0, 10_000_000),
    '1024',
    'Most megabytes of copies of S3 objects below DATA_DIR. What was used lately can be had while ' +
      'S3 is away.',
  ),
} as const;

/** What is wrong with settings that are right one by one; undefined: nothing. */
export function storageProblem(values: Readonly<Record<string, unknown>>): string | undefined {
  const names = [
    'S3_ENDPOINT',
    'S3_REGION',
    'S3_PATH_STYLE',
    'S3_PREFIX',
    'S3_PUBLIC_ENDPOINT',
  ].filter((name) => values[name] !== undefined);
  return names.length > 0 && values['S3_BUCKET'] === undefined
    ? `${names.join(', ')}: S3_BUCKET is not set`
    : undefined;
}

/** The storage that the settings name. */
export function storageOptions(config: {
  readonly DATA_DIR: string;
  readonly S3_BUCKET: string | undefined;
  readonly S3_ENDPOINT: string | undefined;
  readonly S3_REGION: string | undefined;
  readonly S3_PATH_STYLE: boolean | undefined;
  readonly S3_PREFIX: string | undefined;
  readonly S3_DOWNLOADS: 'proxy' | 'redirect';
  readonly S3_PUBLIC_ENDPOINT: string | undefined;
  readonly S3_CACHE_MEGABYTES: number;
}): StorageOptions {
  const { S3_BUCKET: bucket, S3_ENDPOINT: endpoint } = config;
  return {
    folder: config.DATA_DIR,
    cache: {
      directory: path.join(config.DATA_DIR, 'cache'),
      maxBytes: config.S3_CACHE_MEGABYTES * 1e6,
    },
    s3:
      bucket === undefined
        ? undefined
        : {
            bucket,
            endpoint,
            region: config.S3_REGION ?? (endpoint === undefined ? undefined : 'us-east-1'),
            isPathStyle: config.S3_PATH_STYLE ?? endpoint !== undefined,
            prefix: config.S3_PREFIX ?? '',
            links:
              config.S3_DOWNLOADS === 'redirect'
                ? {
                    endpoint: config.S3_PUBLIC_ENDPOINT,
                    isLinked: (key) => /^static\/.*\.(?:mp4|m4s)$/.test(key),
                  }
                : undefined,
            draftDir: path.join(config.DATA_DIR, 'drafts'),
          },
  };
}

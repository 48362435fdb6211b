// All Redis keys: type, time to live and content.
//
// The part in braces is the hash tag. Keys that one script uses share it, so that they are in one slot
// of a cluster. Ids in keys: an API key is the first 16 hex digits of its SHA-256, a token is its
// SHA-256. A key without a TTL below never expires.

const PREFIX = 'mp';

/** Pattern of all keys, for SCAN. */
export const ALL_KEYS = `${PREFIX}:*`;

/** Builds the Redis keys. */
export const keys = {
  /** String: the version of the schema (schema.ts). */
  schema: () => `${PREFIX}:schema`,
  /** String, 15 s: the process that migrates. */
  schemaLock: () => `${PREFIX}:schema-lock`,
  /** Hash: ownerId, name, hash, createdAt, revokedAt, lastUsedAt of an API key. */
  apiKey: (keyId: string) => `${PREFIX}:key:{${keyId}}`,
  /** Hash, 60 s: the token bucket of an API key: tokens, atMs. */
  apiKeyBucket: (keyId: string) => `${PREFIX}:key:{${keyId}}:bucket`,
  /** Sorted set, expires with its last slot: live session id → expiry of its slot, ms. */
  apiKeyLive: (keyId: string) => `${PREFIX}:key:{${keyId}}:live`,
  /** Set: the ids of all API keys. */
  allApiKeys: () => `${PREFIX}:keys`,
  /** String, TOKEN_TTL_SECONDS: the grant of a session token, JSON. */
  token: (tokenHash: string) => `${PREFIX}:token:{${tokenHash}}`,
  /** Hash, CLAIM_TTL_MS: sessionId and serverId of the live session; wanted: another server asked. */
  tokenClaim: (tokenHash: string) => `${PREFIX}:token:{${tokenHash}}:claim`,
  /** Sorted set, pruned: session id → start time, s. */
  history: (ownerId: string) => `${PREFIX}:history:{${ownerId}}`,
  /** Hash, pruned: session id → record, JSON. */
  historyRecords: (ownerId: string) => `${PREFIX}:history:{${ownerId}}:records`,
  /** Sorted set: live session id → last heartbeat, ms. */
  journal: () => `${PREFIX}:journal:{live}`,
  /** Hash: live session id → the first part of its record, JSON; ms:id → its duration, ms. */
  journalRecords: () => `${PREFIX}:journal:{live}:records`,
  /** Sorted set: id of a server → its last heartbeat, ms. */
  nodeBeats: () => `${PREFIX}:cluster:{nodes}:beats`,
  /** Sorted set: id of a server that takes sessions → its room. */
  nodeRooms: () => `${PREFIX}:cluster:{nodes}:rooms`,
  /** Hash: id of a server → its record, JSON; run:id → id of its process. */
  nodeRecords: () => `${PREFIX}:cluster:{nodes}:records`,
  /** Sorted set: id of a dead server → until when another one clears up after it, ms. */
  nodeClearing: () => `${PREFIX}:cluster:{nodes}:clearing`,
  /** Hash: live session id → what a listing shows of it, and what its end must free, JSON. */
  nodeSessions: (nodeId: string) => `${PREFIX}:node:{${nodeId}}:sessions`,
  /** Hash: the record of a face. */
  face: (faceId: string) => `${PREFIX}:face:{${faceId}}`,
  /** Sorted set: face id → createdAt, ms. */
  facesOf: (ownerId: string) => `${PREFIX}:faces:{${ownerId}}`,
  /** Sorted set, pruned after a minute: id of a deleted face → when, ms. */
  deletedFaces: () => `${PREFIX}:faces-deleted`,
  /** Sorted set: job id → its number in the queue. `name` is face or static, here and below. */
  jobsWaiting: (name: string) => `${PREFIX}:jobs:{${name}}:waiting`,
  /** Sorted set: job id → expiry of its lease, ms. */
  jobsRunning: (name: string) => `${PREFIX}:jobs:{${name}}:running`,
  /** Hash: job id → its data, JSON. */
  jobsData: (name: string) => `${PREFIX}:jobs:{${name}}:data`,
  /** Hash: job id → number of attempts; job id:faults → how often its files could not be read. */
  jobsAttempts: (name: string) => `${PREFIX}:jobs:{${name}}:attempts`,
  /** Hash: job id → id of the server that runs it. */
  jobsHolders: (name: string) => `${PREFIX}:jobs:{${name}}:holders`,
  /** String: the last number that was given to a job. */
  jobsCounter: (name: string) => `${PREFIX}:jobs:{${name}}:counter`,
  /** String, most of a minute: id of the server that last looked for files of expired videos. */
  staticSweep: () => `${PREFIX}:static-sweep`,
  /** Hash, STATIC_TTL_SECONDS: the record of a static video. */
  staticVideo: (videoId: string) => `${PREFIX}:static:{${videoId}}`,
  /** Hash: agent id → record, JSON. */
  agents: (ownerId: string) => `${PREFIX}:agents:{${ownerId}}`,
  /** String: a word sealed with SECRETS_KEY, which detects another key. */
  secretsCheck: () => `${PREFIX}:secrets-check`,
  /** String, until its expiry: the grant of an auto token, JSON with sealed secrets. */
  autoToken: (tokenHash: string) => `${PREFIX}:auto:{${tokenHash}}`,
  /** String, its longest session and ten minutes: a conversation that is not over, JSON with sealed keys. */
  conversation: (id: string) => `${PREFIX}:conversation:{${id}}`,
  /** String, 120 s: the id of the conversation that a room's secret opens, once. */
  conversationGrant: (secretHash: string) => `${PREFIX}:conversation-grant:{${secretHash}}`,
  /** String, TRANSCRIPT_RETENTION_DAYS: what was said in a conversation, JSON. */
  transcript: (sessionId: string) => `${PREFIX}:transcript:{${sessionId}}`,
} as const;

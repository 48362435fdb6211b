// The layout of Redis in one place: every key, its type, its time to live and who writes it.
//
// The part in braces is the hash tag: keys that a script touches together share it, so that they lie in one slot of a cluster.
//
// | key                               | type   | TTL                 | written by            | holds
// | mp:key:{K}                        | hash   | none                | api-keys              | ownerId name hash createdAt revokedAt lastUsedAt
// | mp:key:{K}:bucket                 | hash   | 60 s                | api-keys              | the key's token bucket: tokens, atMs
// | mp:key:{K}:live                   | zset   | with the last slot  | quota                 | live session id → when its slot expires, ms
// | mp:keys                           | set    | none                | api-keys              | every K
// | mp:token:{T}                      | string | TOKEN_TTL_SECONDS   | sessions/token        | the session token's grant, JSON
// | mp:token:{T}:claim                | hash   | CLAIM_TTL_MS        | sessions/token        | sessionId serverId of the live session; wanted, by another server
// | mp:history:{O}                    | zset   | none (pruned)       | history               | session id → startTime, s
// | mp:history:{O}:records            | hash   | none (pruned)       | history               | session id → record, JSON
// | mp:journal:{live}                 | zset   | none                | journal               | live session id → last heartbeat, ms
// | mp:journal:{live}:records         | hash   | none                | journal               | live session id → how its record begins, JSON
// | mp:face:{F}                       | hash   | none                | faces                 | the face's record
// | mp:faces:{O}                      | zset   | none                | faces                 | face id → createdAt, ms
// | mp:jobs:{NAME}:waiting            | zset   | none                | jobs                  | job id → its number in the queue
// | mp:jobs:{NAME}:running            | zset   | none                | jobs                  | job id → when its lease ends, ms
// | mp:jobs:{NAME}:data               | hash   | none                | jobs                  | job id → what is to be done, JSON
// | mp:jobs:{NAME}:attempts           | hash   | none                | jobs                  | job id → times it was begun
// | mp:jobs:{NAME}:holders           | hash   | none                | jobs                  | job id → server that runs it
// | mp:jobs:{NAME}:counter            | string | none                | jobs                  | the last number given
// | mp:static:{V}                    | hash   | STATIC_TTL_SECONDS  | static/records        | the static video's record
// | mp:agents:{O}                     | hash   | none                | agents                | agent id → record, JSON
// | mp:auto:{T}                       | string | its expiry          | auto tokens           | the auto token's grant, JSON (its secrets sealed)
// | mp:secrets-check                 | string | none                | secrets               | a word sealed with SECRETS_KEY, by which another key is told
//
// K: first 16 hex digits of the key's SHA-256. T: SHA-256 of the token. O: owner id. F: face id. V: static video id.
// NAME: face, static.

const PREFIX = 'mp';

export const keys = {
  apiKey: (keyId: string) => `${PREFIX}:key:{${keyId}}`,
  apiKeyBucket: (keyId: string) => `${PREFIX}:key:{${keyId}}:bucket`,
  apiKeyLive: (keyId: string) => `${PREFIX}:key:{${keyId}}:live`,
  allApiKeys: () => `${PREFIX}:keys`,
  token: (tokenHash: string) => `${PREFIX}:token:{${tokenHash}}`,
  tokenClaim: (tokenHash: string) => `${PREFIX}:token:{${tokenHash}}:claim`,
  history: (ownerId: string) => `${PREFIX}:history:{${ownerId}}`,
  historyRecords: (ownerId: string) => `${PREFIX}:history:{${ownerId}}:records`,
  journal: () => `${PREFIX}:journal:{live}`,
  journalRecords: () => `${PREFIX}:journal:{live}:records`,
  face: (faceId: string) => `${PREFIX}:face:{${faceId}}`,
  facesOf: (ownerId: string) => `${PREFIX}:faces:{${ownerId}}`,
  jobsWaiting: (name: string) => `${PREFIX}:jobs:{${name}}:waiting`,
  jobsRunning: (name: string) => `${PREFIX}:jobs:{${name}}:running`,
  jobsData: (name: string) => `${PREFIX}:jobs:{${name}}:data`,
  jobsAttempts: (name: string) => `${PREFIX}:jobs:{${name}}:attempts`,
  jobsHolders: (name: string) => `${PREFIX}:jobs:{${name}}:holders`,
  jobsCounter: (name: string) => `${PREFIX}:jobs:{${name}}:counter`,
  staticVideo: (videoId: string) => `${PREFIX}:static:{${videoId}}`,
  agents: (ownerId: string) => `${PREFIX}:agents:{${ownerId}}`,
  secretsCheck: () => `${PREFIX}:secrets-check`,
  autoToken: (tokenHash: string) => `${PREFIX}:auto:{${tokenHash}}`,
} as const;

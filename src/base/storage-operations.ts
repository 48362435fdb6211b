// The operations of a storage of files, for its metrics and its errors.

/** What is done with a storage. `probe` is a trial that the server makes. */
export const STORAGE_OPERATIONS = [
  'put',
  'get',
  'open',
  'read',
  'stat',
  'delete',
  'list',
  'probe',
] as const;
/** An operation. */
export type StorageOperation = (typeof STORAGE_OPERATIONS)[number];

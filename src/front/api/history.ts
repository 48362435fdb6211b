// The finished sessions of the caller, and what they add up to.
import { z } from 'zod';
import { wallSeconds } from '../../base/time.ts';
import { json, stream } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { integerText } from '../http/validate.ts';
import { HISTORY_KINDS, type History } from '../history/history.ts';
import { Usage } from '../history/usage.ts';

const unixTime = integerText({ min: 0, max: 253_402_300_799 }).optional();

/** Days of a report on usage. */
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

/** A finished session. */
export const historyRecordSchema = z
  .object({
    id: z.uuid(),
    userId: z.string(),
    sessionTokenId: z.string(),
    face_id: z.string(),
    kind: z.enum(HISTORY_KINDS),
    endUserAggregator: z.string().optional(),
    apiKeyName: z.string().optional(),
    sessionTotalTime: z.number().meta({ format: 'double', description: 'Seconds.' }),
    startTime: z.int().meta({ description: 'Unix seconds.' }),
    endTime: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'SessionHistoryRecord' });

const used = {
  sessions: z.int().min(0),
  seconds: z.number().min(0).meta({ format: 'double' }),
};

const usageSchema = z
  .object({
    ...used,
    since: z.iso.date().meta({ description: 'The first day, in UTC.' }),
    keys: z
      .array(z.object({ name: z.string(), ...used }))
      .meta({ description: 'By name of the API key, the most seconds first.' }),
    daily: z
      .array(z.object({ date: z.iso.date(), ...used }))
      .meta({ description: 'Every day from `since` to today, by the begin of the sessions.' }),
  })
  .meta({ id: 'Usage' });

/** The routes of the history. */
export const historyRoutes = (history: History, usage = new Usage(history)): Route[] => [
  route({
    method: 'GET',
    path: '/usage',
    tag: 'Accounting',
    auth: 'key',
    summary: 'Finished sessions and their time, by API key and by day',
    query: z.object({
      days: integerText({ min: 1, max: MAX_DAYS })
        .optional()
        .meta({ description: 'Today and the days before it. Default: 30.' }),
    }),
    responses: { 200: { description: 'Of all keys of the owner.', schema: usageSchema } },
    timeoutMs: 60_000,
    handler: async ({ caller, query: { days = DEFAULT_DAYS } }) =>
      json(await usage.of(caller.ownerId, days, wallSeconds()), 200, {
        'cache-control': 'no-store',
      }),
  }),
  route({
    method: 'GET',
    path: '/history/sessions',
    tag: 'Accounting',
    auth: 'key',
    summary: 'Finished sessions, the earliest first',
    query: z.object({
      startTime: unixTime.meta({
        description: 'Only sessions that began at this Unix time or later.',
      }),
      endTime: unixTime.meta({
        description: 'Only sessions that began at this Unix time or earlier.',
      }),
      start: unixTime.meta({ description: 'Another name of startTime.' }),
      end: unixTime.meta({ description: 'Another name of endTime.' }),
    }),
    responses: {
      200: {
        description: 'All records in the range.',
        schema: z.object({ sessions: z.array(historyRecordSchema) }),
      },
    },
    timeoutMs: 60_000,
    handler: ({ caller, query }) =>
      stream(
        'application/json; charset=utf-8',
        asJson(
          history.pages(
            caller.ownerId,
            query.startTime ?? query.start,
            query.endTime ?? query.end,
            wallSeconds(),
          ),
        ),
      ),
  }),
];

/** Streams the records, which are stored as JSON and are not parsed again. */
async function* asJson(pages: AsyncGenerator<string[]>): AsyncGenerator<string> {
  let before = '{"sessions":[';
  for await (const page of pages) {
    yield before + page.join(',');
    before = ',';
  }
  yield before === ',' ? ']}' : `${before}]}`;
}

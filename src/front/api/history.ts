// GET /history/sessions: the finished sessions of the caller.
import { z } from 'zod';
import { wallSeconds } from '../../base/time.ts';
import { stream } from '../http/reply.ts';
import { route, type Route } from '../http/route.ts';
import { integerText } from '../http/validate.ts';
import { HISTORY_KINDS, type History } from '../history/history.ts';

const unixTime = integerText({ min: 0, max: 253_402_300_799 }).optional();

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

/** The route of the history. */
export const historyRoutes = (history: History): Route[] => [
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

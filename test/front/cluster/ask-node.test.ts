// A request to another server that does not answer: the client is told so, the log names the server.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createLogger } from '../../../src/base/log.ts';
import { askNode } from '../../../src/front/cluster/ask-node.ts';

test('the log names a server that does not answer, the client gets no address', async () => {
  const log = createLogger('silent');
  const warned: Record<string, unknown>[] = [];
  log.warn = (fields: object) => warned.push({ ...fields });
  const node = { id: 'other', url: 'http://127.0.0.1:1' };
  await assert.rejects(askNode(node, 'GET', '/sessions/1/stats', {}, log), (error: Error) => {
    assert.equal((error as Error & { code: string }).code, 'NODE_UNREACHABLE');
    assert.doesNotMatch(error.message, /127\.0\.0\.1/);
    return true;
  });
  assert.deepEqual(
    warned.map(({ node: id, url }) => [id, url]),
    [[node.id, node.url]],
  );
});

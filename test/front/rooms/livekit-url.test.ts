// Which LiveKit servers a stranger may send us to.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import { checkLiveKitUrl, isPublicAddress } from '../../../src/front/rooms/livekit-url.ts';

const refusal = async (
  url: string,
  hosts: readonly string[] = [],
  caller = '127.0.0.1',
): Promise<string> => {
  try {
    await checkLiveKitUrl(url, hosts, caller);
    return '';
  } catch (error) {
    assert.ok(error instanceof ServiceError && error.code === 'LIVEKIT_URL_REFUSED', String(error));
    return error.message;
  }
};

test('addresses that are not on the public internet', () => {
  for (const address of [
    '127.0.0.1',
    '10.1.2.3',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
    'fd00::1',
    'fe80::1',
    'ff02::1',
    '2002:a00:1::',
    'localhost',
    '',
  ]) {
    assert.equal(isPublicAddress(address), false, address);
  }
  for (const address of ['1.1.1.1', '8.8.8.8', '172.32.0.1', '2606:4700::1']) {
    assert.equal(isPublicAddress(address), true, address);
  }
});

test('wss to a public address, ws to loopback, and else what the operator lists', async () => {
  assert.equal(await refusal('wss://1.1.1.1'), '');
  assert.equal(await refusal('ws://127.0.0.1:7880/'), '');
  assert.equal(await refusal('http://localhost:7880'), '', 'an http URL means the same');
  assert.match(await refusal('ws://1.1.1.1'), /use wss/);
  const notPublic = [
    'wss://10.0.0.7',
    'wss://[fd00::7]:443',
    'wss://169.254.169.254',
    // Other ways to write the same addresses, and IPv6 that means IPv4.
    'wss://167772161',
    'wss://0xa.0.0.1',
    'wss://012.0.0.1',
    'wss://[::ffff:127.0.0.1]',
    'wss://[::ffff:a9fe:a9fe]',
    'wss://[::127.0.0.1]',
    'wss://[64:ff9b::10.0.0.1]',
    'wss://[2002:7f00:1::]',
    'wss://[fe80::1]',
    'wss://0.0.0.0',
  ];
  for (const url of notPublic) {
    assert.match(await refusal(url), /not public/, url);
  }
  assert.equal(await refusal('ws://10.0.0.7:7880', ['10.0.0.7:7880']), '');
  assert.equal(await refusal('ws://10.0.0.7:7880', ['10.0.0.7']), '');
  assert.match(await refusal('ws://10.0.0.7:7881', ['10.0.0.7:7880']), /use wss/);
});

test('loopback is for callers on this machine, or where the operator lists it', async () => {
  for (const caller of ['127.0.0.1', '127.8.8.8', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1']) {
    assert.equal(await refusal('ws://localhost:7880', [], caller), '', caller);
  }
  for (const caller of ['192.0.2.1', '10.0.0.7', '2001:db8::1', '::ffff:192.0.2.1', '']) {
    for (const host of ['localhost:1', '127.0.0.1:8222', '127.1', '2130706433', '[::1]:80']) {
      assert.match(await refusal(`ws://${host}/admin`, [], caller), /LIVEKIT_HOSTS/, host);
      assert.match(await refusal(`wss://${host}`, [], caller), /LIVEKIT_HOSTS/, host);
    }
    assert.equal(await refusal('ws://localhost:7880', ['localhost:7880'], caller), '');
  }
});

test('what is not the URL of a LiveKit server', async () => {
  for (const url of ['', 'x', 'file:///etc/passwd', 'gopher://1.1.1.1', 'wss://']) {
    assert.match(await refusal(url), /must begin with wss/, url);
  }
  for (const url of ['wss://u:p@1.1.1.1', 'wss://1.1.1.1/?a=1', 'wss://1.1.1.1/#a']) {
    assert.match(await refusal(url), /no user, query or fragment/, url);
  }
  assert.match(await refusal('wss://nothing.invalid'), /has no address/);
});

test('the checked addresses are kept; the candidates of a listed server may be private', async () => {
  assert.deepEqual(await checkLiveKitUrl('wss://1.1.1.1/path/', [], '192.0.2.1'), {
    url: 'wss://1.1.1.1/path',
    addresses: [{ address: '1.1.1.1', family: 4 }],
    isTrusted: false,
  });
  const isTrusted = async (url: string, listed: string): Promise<boolean> =>
    (await checkLiveKitUrl(url, [listed], '192.0.2.1')).isTrusted;
  assert.equal(await isTrusted('wss://1.1.1.1', '1.1.1.1'), true);
  assert.equal(await isTrusted('wss://1.1.1.1', '1.1.1.1:443'), true);
  assert.equal(await isTrusted('wss://1.1.1.1:444', '1.1.1.1:443'), false);
});

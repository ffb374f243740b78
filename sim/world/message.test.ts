import { assert, constantFrom, integer, nat, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { MESSAGE_BYTES_MIN, readMessage, writeMessage, type Message } from './message.ts';

const messages = record<Message>({
  kind: constantFrom('request', 'answer'),
  client: nat(65_535),
  serial: nat(2 ** 31),
  backend: nat(255),
  copy: nat(255),
});

test('a message is read as it was written, whatever its length', () => {
  assert(
    property(messages, integer({ min: MESSAGE_BYTES_MIN, max: 2_000 }), (message, bytes) => {
      const payload = writeMessage(message, bytes);
      expect(payload.length).toBe(bytes);
      expect(readMessage(payload)).toEqual(message);
    }),
  );
});

test('a message with another byte anywhere after its name is none', () => {
  assert(
    property(messages, integer({ min: 13, max: 200 }), nat(), (message, bytes, where) => {
      const payload = writeMessage(message, bytes);
      const at = 9 + (where % (bytes - 9));
      payload[at] = (payload[at] ?? 0) ^ 0x41;
      expect(readMessage(payload)).toBeUndefined();
    }),
  );
});

test('other datagrams are no messages', () => {
  expect(readMessage(new Uint8Array(0))).toBeUndefined();
  expect(readMessage(new Uint8Array(100))).toBeUndefined();
});

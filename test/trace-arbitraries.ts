/** Inputs of both machines, of every kind, as a trace may hold them. */
import * as fc from 'fast-check';
import { ipv4, ipv6, type Address } from '../core/address.ts';
import { listenerId, requestId, socketId, type ListenerId, type SocketId } from '../core/brand.ts';
import type { Errno, SendFailed } from '../core/ports.ts';
import { SIGNATURE } from '../core/proxy-protocol.ts';
import type { Step } from '../core/trace-record.ts';

const word = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const port = fc.integer({ min: 0, max: 65_535 });

export const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.tuple(word, port).map(([a, at]) => ipv4(a, at)),
  fc
    .tuple(fc.tuple(word, word, word, word), port, fc.constantFrom(0, 3, 0x7fff_ffff))
    .map(([words, at, scope]) => ipv6(words, at, scope)),
);
const maybe = fc.option(addresses, { nil: undefined });
const listeners: fc.Arbitrary<ListenerId> = fc.integer({ min: 0, max: 1_023 }).map(listenerId);
const sockets: fc.Arbitrary<SocketId> = fc
  .tuple(
    fc.oneof(
      fc.nat(9),
      fc.maxSafeNat().map((serial) => serial % 2 ** 42),
    ),
    listeners,
  )
  .map(([serial, listener]) => socketId(serial, listener));
const errnos: fc.Arbitrary<Errno> = fc.constantFrom('EPERM', 'ENOBUFS', 'EMSGSIZE');

const lengths = fc.oneof(
  { weight: 20, arbitrary: fc.nat(40) },
  { weight: 1, arbitrary: fc.constantFrom(1_500, 65_535) },
);

/** Zeros, perhaps behind the signature: what a replay makes of any payload. */
const payloads = fc.tuple(lengths, fc.boolean()).map(([length, signed]) => {
  const payload = new Uint8Array(length);
  if (signed && length >= SIGNATURE.length) payload.set(SIGNATURE);
  return payload;
});
const zeros = lengths.map((length) => new Uint8Array(length));
/** More than one datagram each. */
const trains = fc
  .tuple(fc.integer({ min: 1, max: 1_500 }), fc.integer({ min: 1, max: 40 }))
  .map(([unit, more]) => ({ payload: new Uint8Array(unit * more + 1 + (more % unit)), unit }));
const headers = fc.option(fc.uint8Array({ minLength: 1, maxLength: 52 }), { nil: undefined });

const failures: fc.Arbitrary<SendFailed> = fc.oneof(
  record({
    direction: fc.constant('to-backend' as const),
    cause: fc.constantFrom('blocked' as const, 'refused' as const),
    socket: sockets,
    header: headers,
    payload: zeros,
  }),
  record({
    direction: fc.constant('to-client' as const),
    cause: fc.constant('blocked' as const),
    listener: listeners,
    dst: addresses,
    from: maybe,
    payload: zeros,
  }),
  record({
    direction: fc.constant('to-backend' as const),
    cause: fc.constant('error' as const),
    socket: sockets,
    errno: errnos,
  }),
  record({
    direction: fc.constant('to-client' as const),
    cause: fc.constant('error' as const),
    listener: listeners,
    errno: errnos,
  }),
);

const dataSteps: fc.Arbitrary<Step> = fc
  .oneof(
    record({
      kind: fc.constant('ClientArrived' as const),
      listener: listeners,
      src: addresses,
      local: maybe,
      payload: payloads,
    }),
    record({ kind: fc.constant('BackendArrived' as const), socket: sockets, payload: zeros }),
    trains.chain((train) =>
      fc.oneof(
        record({
          kind: fc.constant('ClientTrain' as const),
          listener: listeners,
          src: addresses,
          local: maybe,
          payload: fc.constant(train.payload),
          unit: fc.constant(train.unit),
        }),
        record({
          kind: fc.constant('BackendTrain' as const),
          socket: sockets,
          payload: fc.constant(train.payload),
          unit: fc.constant(train.unit),
        }),
      ),
    ),
    record({
      kind: fc.constantFrom('Flushed' as const, 'Timeout' as const, 'NextDirective' as const),
    }),
    record({
      kind: fc.constantFrom('Refused' as const, 'UpstreamWritable' as const),
      socket: sockets,
    }),
    record({
      kind: fc.constantFrom('ListenerWritable' as const, 'LateSendFailure' as const),
      listener: listeners,
    }),
    record({
      kind: fc.constant('OpenFailed' as const),
      socket: sockets,
      backend: addresses,
      source: maybe,
      errno: errnos,
      unsent: fc.nat(9),
    }),
    record({
      kind: fc.constant('ListenerAnswer' as const),
      listener: listeners,
      errno: fc.option(errnos, { nil: undefined }),
    }),
    record({ kind: fc.constant('SendFailed' as const), failure: failures }),
    record({
      kind: fc.constant('Directed' as const),
      message: record({
        generation: fc.nat(),
        directive: fc.constantFrom({ kind: 'Stop' as const }),
      }),
    }),
  )
  .map((input) => ({ machine: 'data', input }));

const controlSteps: fc.Arbitrary<Step> = fc
  .oneof(
    record({ kind: fc.constantFrom('Timeout' as const, 'NextReport' as const) }),
    record({
      kind: fc.constant('ProbeAnswered' as const),
      probe: fc.nat(),
      answer: fc.constantFrom(
        'ok' as const,
        'refused' as const,
        'failed' as const,
        'not-tried' as const,
      ),
    }),
    record({
      kind: fc.constant('Reported' as const),
      report: record({
        kind: fc.constant('BackendRefused' as const),
        cluster: fc.string({ unit: 'binary' }),
        address: addresses,
        flow: fc.nat(),
      }),
    }),
    record({
      kind: fc.constant('Command' as const),
      request: fc.integer({ min: 1, max: 2 ** 40 }).map(requestId),
      command: fc.oneof(
        record({ kind: fc.constantFrom('SoftStop' as const, 'Status' as const) }),
        record({
          kind: fc.constant('RemoveBackend' as const),
          cluster: fc.string(),
          address: addresses,
        }),
      ),
    }),
  )
  .map((input) => ({ machine: 'control', input }));

/** Any input of either machine. */
export const steps: fc.Arbitrary<Step> = fc.oneof(dataSteps, controlSteps);

/** Objects as programs make them. */
function record<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true });
}

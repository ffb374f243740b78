import { beforeEach, describe, expect, test } from 'vitest';
import { ipv4, type Address } from '../../core/address.ts';
import { listenerId } from '../../core/brand.ts';
import type { ControlEvent, Probe } from '../../core/control-contract.ts';
import { ControlPlane } from '../../core/control-plane.ts';
import { ControlPump } from '../../core/control-pump.ts';
import { DataPlane } from '../../core/data-plane.ts';
import { PLACEMENT_SEED } from '../../core/hash.ts';
import type { ProbeAnswer, ProbeId } from '../../core/health/probe-contract.ts';
import { LOCAL_HEADER } from '../../core/health/probe-contract.ts';
import { healthSettings } from '../../core/health/settings.ts';
import { Pump } from '../../core/pump.ts';
import { after, microseconds, milliseconds, seconds } from '../../core/time.ts';
import { LOCAL } from '../../test/driver-bench.ts';
import { clusterSettings, configOf, listenerConfig } from '../../test/plane-bench.ts';
import { SimulatedControl, TcpTargets } from './os-control.ts';
import { PlainWorld, type Program } from './plain-world.ts';

const HANDSHAKE = milliseconds(2);
const TARGET = ipv4(0x0a000001, 80);
const PAYLOAD = Uint8Array.of(1, 2, 3);

let world: PlainWorld;
let tcp: TcpTargets;
let control: SimulatedControl;
/** Probe and answer, with the microsecond it came in. */
let answers: [ProbeId, ProbeAnswer, number][];
let timers: number[];

beforeEach(() => {
  world = new PlainWorld({ delay: milliseconds(1) });
  tcp = new TcpTargets(HANDSHAKE);
  control = new SimulatedControl(world.kernel, tcp, () => undefined);
  answers = [];
  timers = [];
  control.attach({
    probeAnswered: (probe, answer) => answers.push([probe, answer, control.now()]),
    timer: () => timers.push(control.now()),
  });
});

describe('a TCP probe', () => {
  for (const [manner, answer] of [
    ['accept', 'ok'],
    ['refuse', 'refused'],
  ] as const) {
    test(`of a target that would ${manner} is ${answer} after the handshake`, () => {
      tcp.set(TARGET, manner);
      control.probe(probeOf());
      world.run(microseconds(1_999));
      expect([answers, control.inFlight, world.kernel.descriptors.count]).toEqual([[], 1, 1]);
      world.run(microseconds(1));
      expect(answers).toEqual([[1, answer, 2_000]]);
      expect([control.inFlight, world.kernel.descriptors.count]).toEqual([0, 0]);
    });
  }

  test('of a target that swallows it has no answer until it is cancelled', () => {
    tcp.set(TARGET, 'swallow');
    control.probe(probeOf());
    world.run(seconds(100));
    expect([answers, control.inFlight]).toEqual([[], 1]);
    control.cancelProbe(1);
    expect([control.inFlight, world.kernel.descriptors.count]).toEqual([0, 0]);
  });

  test('of a target that nobody named is refused', () => {
    control.probe(probeOf({ target: ipv4(0x0a000002, 80) }));
    world.run(seconds(1));
    expect(answers).toEqual([[1, 'refused', 2_000]]);
  });
});

describe('a UDP probe', () => {
  test('is header and payload in one datagram, and any reply is ok', () => {
    const echo = echoing();
    control.probe(udp(echo.address, { header: LOCAL_HEADER }));
    world.run(milliseconds(2));
    expect(answers).toEqual([[1, 'ok', 2_000]]);
    expect(echo.mailbox.map(({ payload }) => payload)).toEqual([
      Uint8Array.from([...LOCAL_HEADER, ...PAYLOAD]),
    ]);
    expect(world.kernel.descriptors.count).toBe(0);
  });

  test('of a closed port is refused', () => {
    const echo = echoing();
    echo.close();
    control.probe(udp(echo.address));
    world.run(milliseconds(2));
    expect(answers).toEqual([[1, 'refused', 2_000]]);
  });

  test('of a silent socket has no answer, and hears no stranger', () => {
    const silent = world.program(LOCAL);
    control.probe(udp(silent.address));
    world.run(milliseconds(1));
    const [asked] = silent.mailbox;
    world.program(LOCAL).send(asked?.from ?? LOCAL, PAYLOAD);
    world.run(seconds(1));
    expect([answers, control.inFlight]).toEqual([[], 1]);
    control.cancelProbe(1);
    silent.send(asked?.from ?? LOCAL, PAYLOAD);
    world.run(seconds(1));
    expect([answers, world.kernel.descriptors.count]).toEqual([[], 0]);
  });

  test('whose own port is the one it asks is refused, for it would hear itself', () => {
    const itself = ipv4(0x7f000001, 40_000);
    world = new PlainWorld({ shape: { ephemeralPorts: { low: itself.port, high: itself.port } } });
    control = new SimulatedControl(world.kernel, tcp, () => undefined);
    control.attach({
      probeAnswered: (...answer) => answers.push([...answer, 0]),
      timer: () => undefined,
    });
    control.probe(udp(itself));
    world.run(seconds(1));
    expect(answers).toEqual([[1, 'refused', 0]]);
  });

  test('that the host could not send is not tried, and says so at once', () => {
    const always = { numerator: 1, denominator: 1 };
    for (const faults of [{ noBuffers: always }, { datagramBytes: 2 }, { sendBuffer: 0 }]) {
      world.fault(faults);
      control.probe(udp(echoing().address));
      world.fault({ noBuffers: undefined, datagramBytes: undefined, sendBuffer: undefined });
    }
    expect(answers.map(([, answer]) => answer)).toEqual(['not-tried', 'not-tried', 'not-tried']);
    world.fault({ lateFailures: always });
    control.probe(udp(echoing().address));
    expect(answers).toHaveLength(3);
    world.run(milliseconds(1));
    expect(answers.at(-1)).toEqual([1, 'not-tried', 0]);
    expect(world.kernel.descriptors.count).toBe(0);
  });
});

test('without a descriptor no probe is tried, and it says so at once', () => {
  world.fault({ descriptors: 0 });
  control.probe(probeOf());
  control.probe(udp(TARGET, { probe: 2 }));
  expect(answers).toEqual([
    [1, 'not-tried', 0],
    [2, 'not-tried', 0],
  ]);
});

test('a process that stands still hears its answers when it goes on; one that was killed hears nothing', () => {
  tcp.set(TARGET, 'accept');
  control.probe(probeOf());
  world.fault({ standstill: 'process' });
  world.run(seconds(1));
  expect(answers).toEqual([]);
  world.fault({ standstill: undefined });
  world.run(milliseconds(1));
  expect(answers).toEqual([[1, 'ok', 1_000_000]]);
  control.probe(probeOf({ probe: 2 }));
  control.probe(udp(echoing().address, { probe: 3 }));
  control.wakeAt(after(control.now(), milliseconds(1)));
  control.kill();
  world.run(seconds(1));
  expect([answers.length, timers, control.inFlight]).toEqual([1, [], 0]);
});

test('the timer is one of its own, which the data plane does not move', () => {
  control.wakeAt(after(control.now(), milliseconds(5)));
  world.os.wakeAt(undefined);
  world.run(seconds(1));
  expect(timers).toEqual([5_000]);
});

test('both planes over one host: a backend goes down and comes up as its probes say, by TCP and by UDP', () => {
  for (const mode of ['TCP_PROBE', 'UDP_PROBE'] as const) {
    const backend = echoing();
    tcp.set(backend.address, 'accept');
    const events: ControlEvent[] = [];
    const pump = bothPlanes(backend.address, mode, events);
    world.run(seconds(5));
    expect(events.filter(isChange)).toEqual([]);
    backend.close();
    tcp.set(backend.address, 'refuse');
    world.run(seconds(10));
    expect(events.filter(isChange)).toMatchObject([{ to: 'down' }]);
    backend.reopen();
    tcp.set(backend.address, 'accept');
    world.run(seconds(10));
    expect(events.filter(isChange)).toMatchObject([{ to: 'down' }, { to: 'up' }]);
    pump.stop();
    world.run(seconds(1));
    expect(world.kernel.descriptors.count, mode).toBe(0);
  }
});

/** A control plane and a data plane on the host, with one listener and one probed backend. */
function bothPlanes(
  backend: Address,
  mode: 'TCP_PROBE' | 'UDP_PROBE',
  events: ControlEvent[],
): ControlPump {
  const data = new DataPlane({
    placementSeed: PLACEMENT_SEED,
    tableSeed: { first: 1, second: 2 },
    randomSeed: { high: 3, low: 4 },
  });
  const ports = new SimulatedControl(world.kernel, tcp, (event) => events.push(event));
  const pump: Pump = new Pump(data, world.os, (report) => controlPump.report(report));
  const plane = new ControlPlane({ randomSeed: { high: 5, low: 6 } });
  const controlPump = new ControlPump(plane, ports, pump);
  world.os.attach(pump);
  ports.attach(controlPump);
  const health = healthSettings({
    mode,
    udpProbePayload: PAYLOAD,
    probeInterval: seconds(1),
    probeTimeout: milliseconds(500),
  });
  const backends = [{ id: 'b', address: backend, weight: 100, backup: false }];
  controlPump.configure(
    configOf([clusterSettings({ backends, health })], [listenerConfig({ address: LOCAL })]),
  );
  expect(world.os.portOf(listenerId(0))).toBeDefined();
  return controlPump;
}

function isChange({ kind }: ControlEvent): boolean {
  return kind === 'HealthChanged';
}

function echoing(): Program {
  const echo = world.program(LOCAL);
  echo.heard = ({ from, payload }) => echo.send(from, payload);
  return echo;
}

function udp(target: Address, more: Partial<Probe> = {}): Probe {
  return probeOf({ mode: 'udp', target, payload: PAYLOAD, ...more });
}

function probeOf(more: Partial<Probe> = {}): Probe {
  return {
    kind: 'StartProbe',
    probe: 1,
    cluster: 'c',
    target: TARGET,
    mode: 'tcp',
    payload: undefined,
    header: undefined,
    expectReply: true,
    ...more,
  };
}

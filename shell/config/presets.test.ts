/** Presets in a file: each value of core/presets.ts arrives, and whatever is written wins over it. */
import { describe, expect, test } from 'vitest';
import { NO_CLUSTER } from '../../core/contract.ts';
import { CLUSTER_DEFAULTS, type ClusterSettings, type ListenerConfig } from '../../core/config.ts';
import { PRESET_NAMES, PRESETS, presetValue, type PresetKey } from '../../core/presets.ts';
import { seconds } from '../../core/time.ts';
import { parseConfig } from './parse.ts';

/** What applies without a preset. */
const PLAIN: Pick<ClusterSettings, PresetKey> = {
  frontTimeout: undefined,
  backTimeout: undefined,
  exchange: undefined,
  responses: NO_CLUSTER.responses,
  responsesPerRequest: CLUSTER_DEFAULTS.responsesPerRequest,
  requestsLinger: CLUSTER_DEFAULTS.requestsLinger,
  forwardEmptyDatagrams: CLUSTER_DEFAULTS.forwardEmptyDatagrams,
  proxyProtocolEveryDatagram: NO_CLUSTER.proxyProtocolEveryDatagram,
  onBackendDown: CLUSTER_DEFAULTS.onBackendDown,
  allowBackendAsClient: false,
};

test('without a preset every key that one could set has its plain default', () => {
  expect(parse('').cluster).toMatchObject(PLAIN);
});

describe.each(PRESET_NAMES)('preset %s', (name) => {
  test('sets each of its values, and nothing else', () => {
    const said = Object.fromEntries(
      Object.entries(PRESETS[name]).map(([key, { value }]) => [key, value]),
    );
    const { cluster } = parse(`preset = "${name}"`);
    expect(cluster).toEqual({ ...parse('').cluster, ...said });
  });

  test.each<[PresetKey, string, readonly unknown[]]>([
    ['exchange', 'exchange', ['request-response', 'one-way']],
    ['responses', 'responses', [0, 1, 7]],
    ['responsesPerRequest', 'responses_per_request', [true, false]],
    ['requestsLinger', 'requests_linger', [true, false]],
    ['forwardEmptyDatagrams', 'forward_empty_datagrams', [true, false]],
    ['proxyProtocolEveryDatagram', 'proxy_protocol_every_datagram', [true, false]],
    ['onBackendDown', 'on_backend_down', ['pin', 'rebind', 'close']],
    ['allowBackendAsClient', 'allow_backend_as_client', [true, false]],
  ])('%s is what is written, whatever the preset says', (key, written, values) => {
    for (const value of values) {
      const { cluster } = parse(`preset = "${name}"\n${written} = ${JSON.stringify(value)}`);
      expect(cluster[key]).toBe(value);
    }
  });

  test('its idle times are for flows of listeners that name none', () => {
    const silent = parse(`preset = "${name}"`);
    expect(silent.listener.frontTimeout).toBeUndefined();
    expect(silent.listener.backTimeout).toBeUndefined();
    const named = parse(`preset = "${name}"`, 'front_timeout = 0\nback_timeout = 77');
    expect(named.listener).toMatchObject({ frontTimeout: seconds(0), backTimeout: seconds(77) });
    expect(named.cluster.frontTimeout).toBe(presetValue(name, 'frontTimeout'));
  });

  test('alone causes no warning, on whatever port', () => {
    expect(parse(`preset = "${name}"`, '', 53).problems).toEqual([]);
    expect(parse(`preset = "${name}"\nsend_proxy_protocol = true`, '', 9999).problems).toEqual([]);
  });
});

test('an unknown preset is an error that names the near one', () => {
  const { problems } = parseConfig(text('preset = "DNS"', '', 53));
  expect(problems).toMatchObject([
    { severity: 'error', path: 'clusters.c.udp.preset', fix: 'write "dns"' },
  ]);
});

function text(udp: string, listener: string, port: number): string {
  return `[[listeners]]
protocol = "udp"
address = "127.0.0.1:${port}"
${listener}
[clusters.c]
protocol = "tcp"
frontends = [{ address = "127.0.0.1:${port}" }]
backends = [{ address = "10.0.0.1:${port}" }]
[clusters.c.udp]
${udp}
`;
}

function parse(
  udp: string,
  listener = '',
  port = 53,
): { cluster: ClusterSettings; listener: ListenerConfig; problems: readonly unknown[] } {
  const { config, problems } = parseConfig(text(udp, listener, port));
  const [cluster] = config?.clusters ?? [];
  const [first] = config?.listeners ?? [];
  if (cluster === undefined || first === undefined) throw new Error(JSON.stringify(problems));
  return { cluster, listener: first, problems };
}

/** Bugs of selection: who may be chosen, by which key, and what the policies make of it. And of the PROXY header's bytes. */
import type { Mutant } from './mutant.ts';

export const BACKEND_MUTANTS: readonly Mutant[] = [
  {
    id: 'unhealthy-chosen',
    file: 'core/balancing/candidates.ts',
    search: "return healthy && state === 'active';",
    replace: "return state === 'active';",
    announces: 'new flows go to backends that are known to be down',
  },
  {
    id: 'maglev-over-healthy-subset',
    file: 'core/balancing/maglev.ts',
    search: 'if (candidates !== this.candidates) this.recognise(candidates);',
    replace: `if (candidates !== this.candidates) {
      this.backendsChanged(candidates);
      this.recognise(candidates);
    }`,
    announces: 'the Maglev table is built over the healthy backends: every outage moves clients',
  },
  {
    id: 'no-fail-open',
    file: 'core/balancing/candidates.ts',
    search:
      "const open = this.failOpen ? this.entries.filter(({ state }) => state === 'active') : [];",
    replace: 'const open: readonly Entry[] = [];',
    announces: 'nobody is chosen when every backend is thought to be down',
  },
  {
    id: 'backups-take-part',
    file: 'core/balancing/candidates.ts',
    search: 'const primaries = available.filter(({ backend }) => !backend.backup);',
    replace: 'const primaries = available;',
    announces: 'backups get new flows while primaries are healthy',
  },
  {
    id: 'backups-never-used',
    file: 'core/balancing/candidates.ts',
    search: "if (available.length > 0) return this.settle('backup', available);",
    replace: '',
    announces: 'with all primaries down every backend is tried, healthy backup or not',
  },
  {
    id: 'health-forgotten-by-a-new-list',
    file: 'core/balancing/candidates.ts',
    search: 'healthy: before?.healthy ?? true,',
    replace: 'healthy: true,',
    announces: 'a change of the list takes every backend for healthy',
  },
  {
    id: 'health-remembered-of-strangers',
    file: 'core/balancing/candidates.ts',
    search:
      'this.byAddress = new Map(this.entries.map((entry) => [addressName(entry.backend), entry]));',
    replace:
      'for (const entry of this.entries) this.byAddress.set(addressName(entry.backend), entry);',
    announces: 'a backend that comes back is taken for as healthy as it was when it left',
  },
  {
    id: 'list-not-told-to-policy',
    file: 'core/balancing/backend-set.ts',
    search: 'this.candidates.setBackends(next);\n    this.policy.backendsChanged?.(next);',
    replace: 'this.candidates.setBackends(next);',
    announces: 'the Maglev table stays that of the first list',
  },
  {
    id: 'affinity-always-with-port',
    file: 'core/manager.ts',
    search: 'affinityKey(this.placementSeed, src, this.config.affinityWithPort)',
    replace: 'affinityKey(this.placementSeed, src, true)',
    announces: 'the port takes part in the choice of a backend though it must not',
  },
  {
    id: 'affinity-never-with-port',
    file: 'core/manager.ts',
    search: 'affinityKey(this.placementSeed, src, this.config.affinityWithPort)',
    replace: 'affinityKey(this.placementSeed, src, false)',
    announces: 'the port takes no part in the choice of a backend though it should',
  },
  {
    id: 'affinity-without-seed',
    file: 'core/placement.ts',
    search: 'writeLittleEndian(bytes, 0, seed.low);\n  writeLittleEndian(bytes, 4, seed.high);',
    replace: '',
    announces: 'the seed takes no part in affinity keys',
  },
  {
    id: 'asked-twice',
    file: 'core/manager.ts',
    search:
      'const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);\n' +
      '    const backend = backends.select(key, now);',
    replace:
      'const key = affinityKey(this.placementSeed, src, this.config.affinityWithPort);\n' +
      '    const backend = backends.select(key, now) ?? backends.select(key, now);',
    announces: 'a listener without backends asks for one twice',
  },
  {
    id: 'round-robin-skips',
    file: 'core/balancing/round-robin.ts',
    search: 'this.cursor = (this.cursor + 1) % count;',
    replace: 'this.cursor = (this.cursor + 1) % (count + 1);',
    announces: 'taking turns, the first backend gets two turns in a row',
  },
  {
    id: 'least-loaded-takes-the-last',
    file: 'core/balancing/load.ts',
    search: "case 'CONNECTIONS':\n        return one.flows < other.flows;",
    replace: "case 'CONNECTIONS':\n        return one.flows <= other.flows;",
    announces: 'of backends that carry the same the last is chosen',
  },
  {
    id: 'load-window-never-moves',
    file: 'core/balancing/load.ts',
    search: 'this.sum -= this.buckets[at] ?? 0;',
    replace: '',
    announces: 'datagrams of long ago still count as load',
  },
  {
    id: 'load-not-released',
    file: 'core/balancing/load.ts',
    search: 'holding.flows -= 1;\n    holding.load.flows -= 1;',
    replace: 'holding.flows -= 1;',
    announces: 'a closed flow goes on weighing on its backend',
  },
  {
    id: 'random-from-all',
    file: 'core/balancing/backend-set.ts',
    search: 'const chosen = this.policy.select(this.candidates.list, key, now);',
    replace: 'const chosen = this.policy.select(this.list, key, now);',
    announces: 'policies are given every backend of the list, whoever is eligible',
  },
  {
    id: 'rendezvous-takes-the-lowest',
    file: 'core/balancing/rendezvous.ts',
    search: 'if (score > bestScore) {',
    replace: 'if (best === undefined || score < bestScore) {',
    announces: 'rendezvous hashing sends a client to the backend that scores lowest',
  },
  {
    id: 'maglev-skips-alike',
    file: 'core/balancing/maglev-table.ts',
    search:
      'this.skips[at] = remainder(backendHash(SKIP_KEY, this.seed, address), this.size - 1) + 1;',
    replace: 'this.skips[at] = 1;',
    announces: 'all backends walk the Maglev table with the same step',
  },
  {
    id: 'header-names-the-backend-first',
    file: 'core/proxy-protocol.ts',
    search: 'writeWord(header, 16, client.a);\n    writeWord(header, 20, backend.a);',
    replace: 'writeWord(header, 16, backend.a);\n    writeWord(header, 20, client.a);',
    announces: 'the PROXY header gives the backend for the source',
  },
  {
    id: 'header-says-stream',
    file: 'core/proxy-protocol.ts',
    search: 'header[13] = (family << 4) | DGRAM;',
    replace: 'header[13] = (family << 4) | 1;',
    announces: 'the PROXY header says TCP',
  },
];

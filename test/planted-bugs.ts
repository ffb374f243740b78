/**
 * Bugs that programs of this kind have had, each one wrong line in a copy of core/, to see what the simulator makes of
 * them. For a score of how many bugs it finds see tools/mutants; these few are for what happens after the finding.
 */
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface PlantedBug {
  /** Kebab-case; a replay bears the same name. */
  readonly name: string;
  /** What a user would see of it. */
  readonly shows: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly search: string;
  readonly replace: string;
}

const ROOT = join(import.meta.dirname, '..');
const FOLDERS = ['core', 'sim', 'scenarios'];

/**
 * Lays core/, sim/ and scenarios/ out in `directory` with the bug in it. What leads to the bug is a copy, and an import of
 * it sees a program of its own; so does what declares properties, which is done once. All else is a link.
 */
export function plant(bug: PlantedBug, directory: string): void {
  const texts = sources();
  const text = texts.get(bug.file) ?? '';
  if (text.split(bug.search).length !== 2) {
    throw new Error(`${bug.name}: not exactly once in ${bug.file}: ${bug.search}`);
  }
  texts.set(
    bug.file,
    text.replace(bug.search, () => bug.replace),
  );
  const copied = dependents([bug.file, 'sim/properties.ts'], texts);
  for (const [file, content] of texts) {
    const target = join(directory, file);
    mkdirSync(dirname(target), { recursive: true });
    if (copied.has(file)) writeFileSync(target, content);
    else symlinkSync(join(ROOT, file), target);
  }
}

/** Texts by path, without tests. */
function sources(): Map<string, string> {
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name}`,
    ),
  );
  const own = files.filter((file) => file.endsWith('.ts') && !/\.(?:test|laws)\.ts$/.test(file));
  return new Map(own.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
}

/** Files and all that import them, directly or not. */
function dependents(
  files: readonly string[],
  texts: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const found = new Set(files);
  for (const one of found) {
    for (const [importer, text] of texts) {
      const requests = text.matchAll(/ from '(\.[^']+)'/g);
      const paths = [...requests].map(([, request = '']) => join(dirname(importer), request));
      if (paths.includes(one)) found.add(importer);
    }
  }
  return found;
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'merged-sockets',
    shows: 'Two sockets of one address share a flow, and the replies to both go to the first.',
    file: 'core/manager.ts',
    search: 'const slot = this.table.find(hash, src, local);',
    replace: `let slot: number | undefined;
    for (let one = 0; one < this.table.highWater; one += 1) {
      if (this.table.isLive(one) && this.table.clientOf(one).a === src.a) slot ??= one;
    }`,
  },
  {
    name: 'lost-wake-up',
    shows:
      'A timer that fires early finds nothing due and is never armed again: the flow stays for ever.',
    file: 'core/live-flows.ts',
    search: 'this.armed = undefined;\n',
    replace: '\n',
  },
  {
    name: 'stale-deadline',
    shows:
      'A flow is closed at the deadline of its first datagram although it has been busy since.',
    file: 'core/live-flows.ts',
    search: 'this.deadlines.touch(slot, now, config.frontTimeout);',
    replace:
      'if (this.table.requestsOf(slot) === 1) this.deadlines.touch(slot, now, config.frontTimeout);',
  },
  {
    name: 'drops-counted-twice',
    shows: 'Each dropped datagram is reported twice.',
    file: 'core/manager.ts',
    search: 'this.outputs.push(DROPS[reason]);',
    replace: 'this.outputs.push(DROPS[reason]);\n    this.outputs.push(DROPS[reason]);',
  },
  {
    name: 'flow-without-backend',
    shows: 'A client that no backend can serve counts as a flow that came and went.',
    file: 'core/manager.ts',
    search: "if (backend === undefined) return this.drop('NoBackend');",
    replace: `if (backend === undefined) {
      this.outputs.push({ kind: 'Metric', event: { kind: 'FlowCreated' } });
      this.outputs.push({ kind: 'Metric', event: { kind: 'FlowEvicted' } });
      return this.drop('NoBackend');
    }`,
  },
  {
    name: 'gauge-underflow',
    shows: 'Closing a flow that is closed already counts it as evicted once more.',
    file: 'core/manager.ts',
    search: 'if (this.table.isLive(flow)) this.flows.close(flow, reason);',
    replace: `if (this.table.isLive(flow)) this.flows.close(flow, reason);
    else this.outputs.push({ kind: 'Metric', event: { kind: 'FlowEvicted' } });`,
  },
  {
    name: 'source-counter-leak',
    shows: 'A closed flow still counts against the limit of its source.',
    file: 'core/live-flows.ts',
    search: 'this.sources.subtract(config, table.clientOf(slot));',
    replace: '',
  },
  {
    name: 'flow-follows-cluster',
    shows:
      'A live flow takes over the timeouts, caps and headers of a configuration that came after it.',
    file: 'core/manager.ts',
    search: `const config = this.configs.get(this.table.configOf(slot));
    const firstOnly`,
    replace: `const { config } = this;
    const firstOnly`,
  },
  {
    name: 'header-again',
    shows: 'The PROXY header that belongs on the first datagram of a flow is on all of them.',
    file: 'core/live-flows.ts',
    search: 'if (!config.proxyProtocolEveryDatagram) this.table.setHeaderDue(slot, false);',
    replace: '',
  },
  {
    name: 'one-flow-too-many',
    shows: 'One flow more than the cap is admitted.',
    file: 'core/manager.ts',
    search: 'if (this.table.count >= this.cap)',
    replace: 'if (this.table.count > this.cap)',
  },
  {
    name: 'one-response-too-many',
    shows: 'A flow closes one reply after its cap.',
    file: 'core/flow.ts',
    search: 'return responsesSeen < (',
    replace: 'return responsesSeen <= (',
  },
  {
    name: 'one-request-too-many',
    shows: 'A flow closes one datagram after its cap.',
    file: 'core/flow.ts',
    search: 'requestsSeen >= config.requests)',
    replace: 'requestsSeen > config.requests)',
  },
  {
    name: 'reused-slot',
    shows: 'A slot that is used again still delivers to the client that had it before.',
    file: 'core/flow-table.ts',
    search: 'for (let word = 0; word < KEY_WORDS; word += 1) this.records[at + word]',
    replace: `const isFresh = this.records[at + ENDPOINT] === 0;
    for (let word = isFresh ? 0 : KEY_WORDS; word < KEY_WORDS; word += 1) this.records[at + word]`,
  },
  {
    name: 'unhealthy-backend',
    shows: 'New flows go to backends that are known to be down.',
    file: 'core/balancing/candidates.ts',
    search: "return healthy && state === 'active';",
    replace: "return state === 'active' || healthy;",
  },
  {
    name: 'maglev-over-healthy',
    shows:
      'The Maglev table is built over the healthy backends, so that one failure moves clients of all others.',
    file: 'core/balancing/maglev.ts',
    search: 'this.candidates = candidates;',
    replace: `const overHealthy = new MaglevTable(this.seed, this.size, candidates);
    overHealthy.fill(Infinity);
    this.serve(overHealthy);
    this.candidates = candidates;`,
  },
  {
    name: 'draining-admits',
    shows: 'A draining listener takes new clients.',
    file: 'core/manager.ts',
    search: "if (this.draining) return this.drop('Shed');",
    replace: '',
  },
];

/**
 * A soak: the proxy under half of what it sustains for minutes, with flows that come and go. Whether it keeps anything of what
 * is over shows in its memory and its descriptors, and whether it loses anything in the counts of all who took part, with what
 * the kernel dropped at each of their sockets.
 */
import { batching } from './contenders.ts';
import { ask, launchLoad, openLanes, withPrograms } from './lanes.ts';
import type { Load } from './loads.ts';
import { freePort } from './peers.ts';
import { descriptorsOf, DropLedger, residentMemory } from './proc.ts';
import type { Placement, Program } from './processes.ts';
import { median } from './statistics.ts';

export interface SoakOptions {
  readonly minutes: number;
  readonly placement: Placement;
  readonly progress: (text: string) => void;
}

/** Of one moment between two slices. */
export interface SoakSample {
  readonly seconds: number;
  readonly flows: number;
  /** Open descriptors, less one for each flow: the listener, and what the process has otherwise. */
  readonly otherDescriptors: number;
  /** Whether these are as many as in the beginning. */
  readonly isEven: boolean;
  /** Bytes resident. */
  readonly memory: number;
}

export interface SoakResult {
  readonly minutes: number;
  /** Datagrams a second. */
  readonly rate: number;
  readonly samples: readonly SoakSample[];
  readonly flowsCreated: number;
  /** Bytes: medians of the minute after the first, and of the last. */
  readonly memoryEarly: number;
  readonly memoryLate: number;
  /** With a sample when all flows are over. */
  readonly unevenSamples: number;
  readonly sent: number;
  readonly answered: number;
  /** Where the others were dropped: by the proxy, which counts them, and by the kernel, at sockets of all programs. */
  readonly droppedByProxy: number;
  readonly droppedByKernel: number;
  readonly unexplained: number;
}

/** A slice loads a tenth of the flows; two slices later those are idle. */
const LOAD: Load = { flows: 10_000, active: 1_000, window: 1, bytes: 64 };
const TENTHS = 10;
const SLICE_MS = 5_000;
const IDLE_SECONDS = 8;
const SUSTAINED_MS = 3_000;

export function soak(options: SoakOptions): Promise<SoakResult> {
  const { placement, progress, minutes } = options;
  return withPrograms(async (launch) => {
    const adminPort = await freePort();
    const idle = `front_timeout = ${IDLE_SECONDS}\nback_timeout = ${IDLE_SECONDS}\n`;
    const contender = batching('sozu-udp mmsg', {
      listener: `max_flows = 16384\n${idle}`,
      tables: `[admin]\naddress = "127.0.0.1:${adminPort}"\n`,
    });
    const [lane] = await openLanes([contender], { placement }, launch);
    if (lane?.proxy === undefined) throw new Error('there is one lane');
    const load = await launchLoad(lane, LOAD, { placement, number: 0 }, launch);
    const site = new Site(lane.proxy, load, lane.backend, `http://127.0.0.1:${adminPort}/metrics`);
    const [trips = 0] = await ask(load, `closed ${SUSTAINED_MS}`, SUSTAINED_MS);
    const rate = Math.floor((trips * 1_000) / SUSTAINED_MS / 2);
    progress(`${rate} datagrams a second for ${minutes} minutes`);
    await site.begin();
    const samples: SoakSample[] = [];
    const counts = { sent: 0, answered: 0 };
    for (let slice = 0; slice * SLICE_MS < minutes * 60_000; slice += 1) {
      const part = `${((slice % TENTHS) * LOAD.flows) / TENTHS} ${LOAD.flows / TENTHS}`;
      const command = `open ${SLICE_MS} ${rate} ${part}`;
      const [sent = 0, answered = 0] = await ask(load, command, SLICE_MS);
      counts.sent += sent;
      counts.answered += answered;
      const sample = await site.sample(((slice + 1) * SLICE_MS) / 1_000);
      samples.push(sample);
      progress(summary(sample, counts.sent - counts.answered));
    }
    await new Promise((resolve) => setTimeout(resolve, (IDLE_SECONDS + 2) * 1_000));
    const last = await site.sample(minutes * 60 + IDLE_SECONDS);
    const unevenSamples = [...samples, last].filter(({ isEven }) => !isEven).length;
    const memory = memoryOf(samples);
    return { minutes, rate, samples, unevenSamples, ...memory, ...(await site.fate(counts)) };
  });
}

function memoryOf(samples: readonly SoakSample[]): Pick<SoakResult, 'memoryEarly' | 'memoryLate'> {
  const end = samples.at(-1)?.seconds ?? 0;
  const between = (from: number, to: number): number =>
    median(
      samples.filter(({ seconds }) => seconds > from && seconds <= to).map(({ memory }) => memory),
    );
  return {
    memoryEarly: between(Math.min(60, end / 2), Math.min(120, end)),
    memoryLate: between(Math.max(0, end - 60), end),
  };
}

function summary({ seconds, flows, memory }: SoakSample, missing: number): string {
  const mebibytes = (memory / 2 ** 20).toFixed(0);
  return `${seconds} s: ${flows} flows, ${mebibytes} MiB, ${missing} without an answer`;
}

type Fate = Pick<SoakResult, 'droppedByProxy' | 'droppedByKernel' | 'flowsCreated'>;

/** All that take part, and what is asked of them between slices. */
class Site {
  private readonly proxy: Program;
  private readonly pids: readonly number[];
  private readonly metrics: string;
  private readonly drops = new DropLedger();
  private others = 0;
  private before: Fate = { droppedByProxy: 0, droppedByKernel: 0, flowsCreated: 0 };

  constructor(proxy: Program, load: Program, backend: Program, metrics: string) {
    this.proxy = proxy;
    this.pids = [proxy, load, backend].map(({ pid }) => pid);
    this.metrics = metrics;
  }

  /** What was counted before is no part of it. */
  async begin(): Promise<void> {
    const { otherDescriptors } = await this.sample(0);
    this.others = otherDescriptors;
    this.before = fateOf(await this.scrape(), this.drops.total);
  }

  /** Flows only end while no datagrams come: the descriptors are right if they are those of some time between two looks. */
  async sample(seconds: number): Promise<SoakSample> {
    const before = await this.flows();
    const descriptors = descriptorsOf(this.proxy.pid).length;
    const flows = await this.flows();
    this.drops.look(this.pids);
    const isEven = descriptors >= flows + this.others && descriptors <= before + this.others;
    const otherDescriptors = isEven ? this.others : descriptors - flows;
    return { seconds, flows, otherDescriptors, isEven, memory: residentMemory(this.proxy.pid) };
  }

  private async flows(): Promise<number> {
    return sumOf(await this.scrape(), 'sozu_udp_active_flows');
  }

  /** What became of the datagrams that had no answer. */
  async fate({
    sent,
    answered,
  }: Pick<SoakResult, 'sent' | 'answered'>): Promise<
    Fate & Pick<SoakResult, 'sent' | 'answered' | 'unexplained'>
  > {
    const now = fateOf(await this.scrape(), this.drops.total);
    const droppedByProxy = now.droppedByProxy - this.before.droppedByProxy;
    const droppedByKernel = now.droppedByKernel - this.before.droppedByKernel;
    const flowsCreated = now.flowsCreated - this.before.flowsCreated;
    const unexplained = sent - answered - droppedByProxy - droppedByKernel;
    return { sent, answered, flowsCreated, droppedByProxy, droppedByKernel, unexplained };
  }

  private async scrape(): Promise<string> {
    return (await fetch(this.metrics)).text();
  }
}

function fateOf(text: string, droppedByKernel: number): Fate {
  const dropped = sumOf(text, 'sozu_udp_datagrams_dropped_total');
  return {
    droppedByProxy: dropped + sumOf(text, 'sozu_udp_send_failed_late_total'),
    droppedByKernel,
    flowsCreated: sumOf(text, 'sozu_udp_flows_created_total'),
  };
}

/** Of all series of a metric. */
function sumOf(text: string, metric: string): number {
  const lines = text.matchAll(new RegExp(`^${metric}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
}

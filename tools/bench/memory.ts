/** What ten thousand live flows take in memory, over sockets: flow-memory.ts between load generators and a backend. */
import { writeProductConfig } from './contenders.ts';
import { launchLoad, openFlows, withPrograms } from './lanes.ts';
import { built } from './paths.ts';
import { backendCommand, freePort } from './peers.ts';
import { scratchFolder, type Placement } from './processes.ts';

/** Bytes. */
export interface MemoryResult {
  readonly flows: number;
  /** What was taken for a flow when it came: its socket's objects and its entries. */
  readonly heapPerFlow: number;
  /** Its place in the tables of the flow machine, which are laid out when the listener opens. */
  readonly tablePerFlow: number;
}

const FEW = 1_000;
const MANY = 10_000;

export function measureMemory(
  placement: Placement,
  progress: (text: string) => void,
): Promise<MemoryResult> {
  return withPrograms(async (launch) => {
    const backend = launch('backend', backendCommand(), placement.peers);
    const backendPort = Number((await backend.waitFor(/^listening \d+$/)).split(' ')[1]);
    const port = await freePort();
    const place = { port, backendPort, folder: scratchFolder() };
    const config = writeProductConfig(place, { listener: `max_flows = ${MANY}` });
    const program = [built('tools/bench/flow-memory.js'), config, `${FEW}`, `${MANY}`];
    const command = [process.execPath, '--expose-gc', ...program];
    const proxy = launch('flow-memory', command, placement.proxy);
    await proxy.waitFor(/^listening$/);
    const lane = { name: 'flow-memory', ...place, proxy, backend };
    const open = async (flows: number, number: number): Promise<void> => {
      const load = { flows, window: 1, bytes: 64 };
      await openFlows(lane, await launchLoad(lane, load, { placement, number }, launch));
    };
    progress(`${FEW} flows`);
    const counted = proxy.waitFor(/^counted/);
    await open(FEW, 0);
    await counted;
    progress(`${MANY} flows`);
    const answer = proxy.waitFor(/^[\d.]+ [\d.]+$/);
    await Promise.race([answer, open(MANY - FEW, 1)]);
    const [heapPerFlow = Number.NaN, tablePerFlow = Number.NaN] = (await answer)
      .split(' ')
      .map(Number);
    return { flows: MANY, heapPerFlow, tablePerFlow };
  });
}

/** Passive health against real processes: nobody probes, the traffic alone tells. */
import { expect, onTestFinished, test } from 'vitest';
import { openClients, type Client } from './client.ts';
import { startEcho, type Echo } from './echo.ts';
import { freePort } from './ports.ts';
import { startProxy, toml, type ProxyProcess } from './proxy.ts';

const PERIOD_MILLISECONDS = 50;

test('a stopped backend leaves rotation by its traffic alone where requests are answered', async () => {
  const { alpha, proxy, port, talk } = await start('request-response');
  await talk.until(() => everybodyIsServed(talk), 'traffic that is answered');
  const stopped = Date.now();
  alpha.child.signal('SIGSTOP');
  const ejected = await proxy.told('backend ejected', alpha.endpoint);
  expect(ejected).toMatchObject({ level: 40, cluster: 'e2e', evidence: 'answers' });
  process.stdout.write(
    `stopped, then out of rotation after ${Number(ejected['time']) - stopped} ms (wanted: below 3000)\n`,
  );
  for (const client of await openClients(4, { to: port })) {
    expect(await client.ask('who?')).toBe('beta: who?');
  }
  alpha.child.signal('SIGCONT');
  await proxy.told('backend returned', alpha.endpoint);
  talk.stop();
  expect((await proxy.softStop()).code).toBe(0);
});

test('a backend of a one-way cluster is never ejected for its silence', async () => {
  const { alpha, proxy, talk } = await start('one-way');
  await talk.until(() => everybodyIsServed(talk), 'traffic that is answered');
  alpha.child.signal('SIGSTOP');
  // Longer than it takes where requests are answered.
  const rounds = talk.rounds + 4_000 / PERIOD_MILLISECONDS;
  await talk.until(() => talk.rounds >= rounds, 'four seconds of silence');
  expect(proxy.logs.all.filter(({ msg }) => msg === 'backend ejected')).toEqual([]);
  alpha.child.signal('SIGCONT');
  talk.stop();
  expect((await proxy.softStop()).code).toBe(0);
});

test('a backend that is killed is out of rotation for what its port refuses', async () => {
  const { alpha, proxy, port, talk } = await start(undefined);
  await talk.until(() => everybodyIsServed(talk), 'traffic that is answered');
  alpha.child.signal('SIGKILL');
  const ejected = await proxy.told('backend ejected', alpha.endpoint);
  expect(ejected).toMatchObject({ level: 40, evidence: 'refusals', refusals: 6 });
  for (const client of await openClients(4, { to: port })) {
    expect(await client.ask('who?')).toBe('beta: who?');
  }
  talk.stop();
  expect((await proxy.softStop()).code).toBe(0);
});

interface Setting {
  readonly alpha: Echo;
  readonly proxy: ProxyProcess;
  readonly port: number;
  readonly talk: Talk;
}

/** Two backends, and eight clients that send twenty datagrams a second each until the end of the test. */
async function start(exchange: string | undefined): Promise<Setting> {
  const [alpha, beta] = [await startEcho('alpha'), await startEcho('beta')];
  const port = await freePort();
  const proxy = await startProxy(
    toml({
      listen: `127.0.0.1:${port}`,
      backends: [alpha.endpoint, beta.endpoint],
      udp: exchange === undefined ? {} : { exchange },
    }),
  );
  return { alpha, proxy, port, talk: new Talk(await openClients(8, { to: port })) };
}

class Talk {
  readonly clients: readonly Client[];
  rounds = 0;
  private readonly waiters = new Set<() => void>();
  private readonly timer: NodeJS.Timeout;

  constructor(clients: readonly Client[]) {
    this.clients = clients;
    this.timer = setInterval(() => {
      this.rounds += 1;
      for (const client of clients) void client.send(`round ${this.rounds}`);
      for (const look of this.waiters) look();
    }, PERIOD_MILLISECONDS);
    onTestFinished(() => this.stop());
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Looks after every round. */
  until(isSo: () => boolean, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      let looks = 0;
      const look = (): void => {
        looks += 1;
        const found = isSo();
        if (!found && looks < 400) return;
        this.waiters.delete(look);
        if (found) resolve();
        else reject(new Error(`waited in vain for ${what}`));
      };
      this.waiters.add(look);
    });
  }
}

/** Every client was answered often enough for a ratio. */
function everybodyIsServed({ clients }: Talk): boolean {
  return clients.every(({ replies }) => replies.all.length >= 20);
}

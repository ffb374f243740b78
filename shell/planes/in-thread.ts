/** One data plane in the main thread, beside the control plane: what is directed is done, and reported, within the call. */
import {
  DataPlane,
  figuresOf,
  Pump,
  type GeneratedDirective,
  type Instant,
  type ListenerId,
  type PlaneFigures,
  type PlaneOptions,
} from '../../core/index.ts';
import { DgramDriver } from '../drivers/dgram.ts';
import type { ListenerSocketName } from '../metrics/kernel-drops.ts';
import { NO_TRAINS, type PlaneHooks, type PlaneHost } from './host.ts';

export class InThreadPlane implements PlaneHost {
  readonly plane: DataPlane;
  readonly options: PlaneOptions;
  private readonly driver = new DgramDriver();
  private pump: Pump | undefined;

  constructor(options: PlaneOptions) {
    this.options = options;
    this.plane = new DataPlane(options);
  }

  begin({ tap, report }: PlaneHooks): void {
    this.pump = new Pump(tap(this.plane), this.driver, report);
    this.driver.attach(this.pump);
  }

  get about(): PlaneHost['about'] {
    return { driver: this.driver.capabilities.name, workers: 1 };
  }

  get figures(): PlaneFigures {
    return figuresOf(this.plane);
  }

  get each(): readonly PlaneFigures[] {
    return [this.figures];
  }

  get trains(): PlaneHost['trains'] {
    return NO_TRAINS;
  }

  get sockets(): readonly ListenerSocketName[] {
    return this.plane.listeners.all.flatMap(({ id, config: { address } }) => {
      const [port, inode] = [this.driver.portOf(id), this.driver.inodeOf(id)];
      return port === undefined || inode === undefined ? [] : [{ address, port, inode }];
    });
  }

  direct(message: GeneratedDirective): void {
    this.begun.direct(message);
  }

  endTurn(): void {
    this.begun.endTurn();
  }

  now(): Instant {
    return this.driver.now();
  }

  async refresh(): Promise<PlaneFigures> {
    return this.figures;
  }

  settle(done: () => void): void {
    done();
  }

  portOf(listener: ListenerId): number | undefined {
    return this.driver.portOf(listener);
  }

  async dump(): Promise<readonly string[]> {
    return [];
  }

  async end(): Promise<void> {
    // Its sockets are closed, and there is nothing else.
  }

  private get begun(): Pump {
    if (this.pump === undefined) throw new Error('begin() comes first');
    return this.pump;
  }
}

/** What the tests of passive health stand on: a cluster, its traffic, and whoever performs what is asked. */
import { expect } from 'vitest';
import { ipv4, type Address } from '../core/address.ts';
import { present } from '../core/assert.ts';
import type { ProbeResult } from '../core/health/hysteresis.ts';
import type { PassiveOutput, PassiveSettings } from '../core/health/passive-contract.ts';
import { PassiveHealth } from '../core/health/passive.ts';
import { after, instant, milliseconds, type Duration, type Instant } from '../core/time.ts';

export function backend(number: number): Address {
  return ipv4(0x0a000000 + number, 53);
}

type OutputOf<Kind extends PassiveOutput['kind']> = Extract<PassiveOutput, { kind: Kind }>;

/** A cluster whose backends go by the number of their address. */
export class PassiveBench {
  readonly passive: PassiveHealth;
  readonly log: PassiveOutput[] = [];
  now: Instant = instant(0);

  constructor(settings: PassiveSettings, backends: number) {
    this.passive = new PassiveHealth(settings);
    this.configure(settings, backends);
  }

  configure(settings: PassiveSettings, backends: number | readonly Address[]): void {
    const list =
      typeof backends === 'number'
        ? Array.from({ length: backends }, (_, number) => backend(number))
        : backends;
    this.passive.configure(settings, list, this.now);
    this.drain();
  }

  has(number: number): boolean {
    return this.passive.slotOf(backend(number)) !== undefined;
  }

  refuse(number: number, flow: number): void {
    this.passive.refused(this.slotOf(number), flow, this.now);
    this.drain();
  }

  refuseEnough(number: number): void {
    for (const flow of [1, 2, 3, 1, 2, 3]) this.refuse(number, flow);
  }

  forward(number: number, count: number): void {
    this.passive.forwarded(this.slotOf(number), count, this.now);
  }

  answer(number: number, count: number): void {
    this.passive.answered(this.slotOf(number), count);
  }

  probe(number: number, result: ProbeResult): void {
    this.passive.probed(this.slotOf(number), result, this.now);
    this.drain();
  }

  setAvailable(number: number, available: boolean): void {
    this.passive.setAvailable(this.slotOf(number), available, this.now);
    this.drain();
  }

  /** Every backend is asked once a pause, 50 times a second; each answers at once or not at all. */
  traffic(
    duration: Duration,
    answers: (number: number) => boolean,
    pause: Duration = milliseconds(20),
  ): void {
    const end = after(this.now, duration);
    while (this.now < end) {
      this.passes(pause);
      for (let number = 0; this.has(number); number += 1) {
        this.forward(number, 1);
        if (answers(number)) this.answer(number, 1);
      }
    }
  }

  wake(): void {
    const { at } = present(this.passive.nextWake(), 'there is something to wake for');
    expect(at).toBeGreaterThan(this.now);
    this.now = at;
    this.passive.handleTimeout(this.now);
    this.drain();
  }

  /** Time passes; whatever is due in it happens at its time. */
  passes(duration: Duration | Instant): void {
    const end = instant(this.now + duration);
    for (;;) {
      const wake = this.passive.nextWake();
      if (wake === undefined || wake.at > end) break;
      this.wake();
    }
    this.now = end;
  }

  kinds(): string[] {
    return this.log.map(({ kind }) => kind);
  }

  told<Kind extends PassiveOutput['kind']>(kind: Kind): OutputOf<Kind>[] {
    return this.log.filter((output): output is OutputOf<Kind> => output.kind === kind);
  }

  private slotOf(number: number): number {
    return present(this.passive.slotOf(backend(number)), 'the backend is one of the cluster');
  }

  private drain(): void {
    for (let output = this.passive.pollOutput(); output !== undefined;) {
      this.log.push(output);
      output = this.passive.pollOutput();
    }
  }
}

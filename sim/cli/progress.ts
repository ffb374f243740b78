/** How far a sweep is: a bar that redraws itself on a terminal, a line now and then elsewhere. */
import { thousands } from './summary.ts';

export interface ProgressOutput {
  readonly isTerminal: boolean;
  write(text: string): void;
  /** Seconds since some start. */
  now(): number;
}

const BAR_CELLS = 24;
const REDRAW_SECONDS = 0.1;
const LINE_SECONDS = 5;

export class Progress {
  private readonly total: number;
  private readonly output: ProgressOutput;
  private readonly begun: number;
  private seeds = 0;
  private steps = 0;
  private told: number;

  /** `total` seeds are to come. */
  constructor(total: number, output: ProgressOutput) {
    this.total = total;
    this.output = output;
    this.begun = output.now();
    this.told = this.begun;
  }

  add(seeds: number, steps: number): void {
    this.seeds += seeds;
    this.steps += steps;
    const { isTerminal } = this.output;
    const now = this.output.now();
    if (now - this.told < (isTerminal ? REDRAW_SECONDS : LINE_SECONDS)) return;
    this.told = now;
    if (isTerminal) this.output.write(`\r${this.bar()} ${this.figures(now)}\u001b[K`);
    else this.output.write(`${this.figures(now)}\n`);
  }

  /** Takes the bar away, so that what follows stands alone. */
  end(): void {
    if (this.output.isTerminal) this.output.write('\r\u001b[K');
  }

  private bar(): string {
    const full = Math.floor((this.seeds / this.total) * BAR_CELLS);
    return `[${'#'.repeat(full)}${'.'.repeat(Math.max(0, BAR_CELLS - full))}]`;
  }

  private figures(now: number): string {
    const seconds = Math.max(now - this.begun, 0.001);
    const left = ((this.total - this.seeds) * seconds) / Math.max(this.seeds, 1);
    const share = Math.floor((this.seeds / this.total) * 100);
    return (
      `${share} % of ${thousands(this.total)} seeds, ${thousands(this.seeds / seconds)} seeds/s, ` +
      `${thousands(this.steps / seconds)} steps/s, ${duration(left)} left`
    );
  }
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
}

/** Bugs of the joint between one control plane and several data planes: what is granted, told or asked is not of all. */
import type { Mutant } from './mutant.ts';

export const WORKER_MUTANTS: readonly Mutant[] = [
  {
    id: 'share-rounded-up',
    file: 'core/plane-group.ts',
    search: 'Math.floor(whole / count) + (plane < whole % count ? 1 : 0)',
    replace: 'Math.ceil(whole / count)',
    announces: 'planes are granted more flows together than their listener may have',
  },
  {
    id: 'share-loses-the-rest',
    file: 'core/plane-group.ts',
    search: ' + (plane < whole % count ? 1 : 0)',
    replace: '',
    announces: 'what a cap leaves over when it is divided is granted to nobody',
  },
  {
    id: 'stopped-at-the-first-plane',
    file: 'core/plane-group.ts',
    search: 'if (this.stopped < this.count) return;',
    replace: 'if (this.stopped > 1) return;',
    announces: 'a stop is over with the first plane that has ended',
  },
  {
    id: 'stop-counts-one-plane',
    file: 'core/plane-group.ts',
    search: 'this.flowsClosed += report.flowsClosed;',
    replace: 'this.flowsClosed = report.flowsClosed;',
    announces: 'a stop tells the flows that one plane cut short, not all of them',
  },
  {
    id: 'planes-drain-apart',
    file: 'core/plane-group.ts',
    search: 'return { ...directive, together: true };',
    replace: 'return directive;',
    announces:
      'a plane without flows closes its sockets while others drain, and moves their clients',
  },
  {
    id: 'drain-counts-one-plane',
    file: 'core/group-drains.ts',
    search: 'flows += left;',
    replace: 'flows = left;',
    announces: 'a drained backend is empty as soon as one plane has no flow there',
  },
  {
    id: 'drain-told-early',
    file: 'core/group-drains.ts',
    search: 'if (drain.flows.size < this.count) return;',
    replace: '',
    announces: 'a drained backend is empty before all planes have said how many flows they have',
  },
  {
    id: 'open-at-the-first-plane',
    file: 'core/group-listeners.ts',
    search: 'one.open.size < this.count',
    replace: 'one.open.size < 1',
    announces: 'a listener counts as open when the first plane has opened it',
  },
  {
    id: 'closed-listener-counts-one-plane',
    file: 'core/group-listeners.ts',
    search: 'one.flowsClosed += report.flowsClosed;',
    replace: 'one.flowsClosed = report.flowsClosed;',
    announces: 'a listener that closes tells the flows of one plane, not of all',
  },
  {
    id: 'list-of-one-plane',
    file: 'core/group-questions.ts',
    search: 'matched += answer.matched;',
    replace: 'matched = answer.matched;',
    announces: 'a list of flows counts those of one plane',
  },
  {
    id: 'answered-twice',
    file: 'core/group-questions.ts',
    search: 'if (answers.length < asked) return undefined;\n    this.open.delete(request);',
    replace: '',
    announces: 'each plane’s answer is told as if it were that of all',
  },
  {
    id: 'flow-asked-of-another-plane',
    file: 'core/group-questions.ts',
    search: 'plane: number % this.count,',
    replace: 'plane: 0,',
    announces: 'a flow that an operator names is looked for, and killed, in the wrong plane',
  },
];

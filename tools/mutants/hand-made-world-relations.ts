/**
 * Bugs that show when a run is compared with another: clocks that are ahead, machines that come out of a snapshot, turns of
 * another size. Each is for a relation of sim/world/metamorphic.ts.
 */
import type { Mutant } from './mutant.ts';

export const WORLD_RELATION_MUTANTS: readonly Mutant[] = [
  {
    id: 'sketch-in-single-precision',
    file: 'core/token-sketch.ts',
    search: 'this.cells = new Float64Array(ROWS * columns * STRIDE);',
    replace: 'this.cells = new Float32Array(ROWS * columns * STRIDE);',
    announces: 'what a source has spent is rounded the more the longer its machine runs',
  },
  {
    id: 'snapshot-overlooks-words',
    file: 'core/snapshot-bytes.ts',
    search: 'for (let at = from; at < to; at += 1) if (words[at] !== 0) return false;',
    replace: 'for (let at = from; at < to; at += 16) if (words[at] !== 0) return false;',
    announces: 'parts of tables that look empty come out of a snapshot empty',
  },
  {
    id: 'snapshot-moves-negatives',
    file: 'core/snapshot-read.ts',
    search: 'return -1 - graph.count();',
    replace: 'return -graph.count();',
    announces: 'numbers below zero come out of a snapshot one too high',
  },
  {
    id: 'snapshot-numbers-tables-late',
    file: 'core/snapshot-read.ts',
    search:
      'const number = this.objects.push({}) - 1;\n    const view = viewOver(kind, this.buffer());',
    replace:
      'const view = viewOver(kind, this.buffer());\n    const number = this.objects.push({}) - 1;',
    announces: 'what shares a table is given another object out of a snapshot',
  },
  {
    id: 'turn-counts-as-one-datagram',
    file: 'core/plane-listeners.ts',
    search: 'listener.counters.forwarded += listener.sentToBackends;',
    replace: 'listener.counters.forwarded += Math.min(1, listener.sentToBackends);',
    announces: 'what was forwarded in one turn counts as one datagram',
  },
  {
    id: 'batch-of-questions-is-cut',
    file: 'core/egress.ts',
    search:
      "tally.sentToBackends += 1;\n    this.outputs.push({ kind: 'SendToBackend', socket, header, payload });\n  }\n\n  toClient(",
    replace:
      "if (tally.sentToBackends >= 4) return;\n    tally.sentToBackends += 1;\n    this.outputs.push({ kind: 'SendToBackend', socket, header, payload });\n  }\n\n  toClient(",
    announces:
      'of what comes for backends in one turn, the fifth datagram and all behind it are lost',
  },
  {
    id: 'batch-of-answers-is-cut',
    file: 'core/egress.ts',
    search:
      "tally.sentToClients += 1;\n    this.outputs.push({ kind: 'SendToClient', listener, dst, from, payload });\n  }\n\n  /** A flush",
    replace:
      "if (tally.sentToClients >= 4) return;\n    tally.sentToClients += 1;\n    this.outputs.push({ kind: 'SendToClient', listener, dst, from, payload });\n  }\n\n  /** A flush",
    announces:
      'of what comes for clients in one turn, the fifth datagram and all behind it are lost',
  },
];

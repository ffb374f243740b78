/**
 * The classic BPF program by which the kernel picks one of the sockets that share an address: a hash of the source address
 * and of nothing else, so that all of a source comes to one worker and limits per source are exact.
 */
import { SOCK_FILTER } from './libc-layout.ts';

/** A program as the kernel wants it: `struct sock_filter` after `struct sock_filter`. */
export interface FilterProgram {
  readonly bytes: Uint8Array;
  readonly instructions: number;
}

/** [code, jump if true, jump if false, constant] */
type Instruction = readonly [number, number, number, number];

/** Numbers of <linux/bpf_common.h> and <linux/filter.h>. */
const LOAD_WORD = 0x20;
const LOAD_BYTE = 0x30;
const SHIFT_RIGHT = 0x74;
const MULTIPLY = 0x24;
const MODULO = 0x94;
const XOR_X = 0xac;
const TO_X = 0x07;
const JUMP = 0x05;
const JUMP_IF_EQUAL = 0x15;
const RETURN_A = 0x16;
/** Loads count from the payload on; from here on they count from the header of IP. */
const NETWORK_HEADER = -0x100000;

/** Odd, so that a product loses nothing; its high bits depend on all the low ones, and a fold brings them down again. */
const SPREAD = 0x9e3779b1;
const SOURCE = { 4: 12, 6: 8 } as const;

const IPV4: readonly Instruction[] = [word(SOURCE[4])];
const IPV6: readonly Instruction[] = [
  word(SOURCE[6]),
  ...[4, 8, 12].flatMap((at) => [
    [MULTIPLY, 0, 0, SPREAD] as const,
    [TO_X, 0, 0, 0] as const,
    word(SOURCE[6] + at),
    [XOR_X, 0, 0, 0] as const,
  ]),
];

const MIX: readonly Instruction[] = [
  ...fold(16),
  [MULTIPLY, 0, 0, SPREAD],
  ...fold(15),
  [MULTIPLY, 0, 0, SPREAD],
  ...fold(16),
];

/** Instructions of a program, whatever the count is. */
const LENGTH = 3 + IPV4.length + 1 + IPV6.length + MIX.length + 2;

export const STEERING_BYTES: number = LENGTH * SOCK_FILTER.size;

/** The program for `count` sockets, one at least. */
export function steeringBySource(count: number): FilterProgram {
  const program: readonly Instruction[] = [
    [LOAD_BYTE, 0, 0, NETWORK_HEADER],
    [SHIFT_RIGHT, 0, 0, 4],
    [JUMP_IF_EQUAL, IPV4.length + 1, 0, 6],
    ...IPV4,
    [JUMP, 0, 0, IPV6.length],
    ...IPV6,
    ...MIX,
    [MODULO, 0, 0, count],
    [RETURN_A, 0, 0, 0],
  ];
  const view = new DataView(new ArrayBuffer(STEERING_BYTES));
  for (const [n, [code, ifTrue, ifFalse, constant]] of program.entries()) {
    const at = n * SOCK_FILTER.size;
    view.setUint16(at + SOCK_FILTER.code, code, true);
    view.setUint8(at + SOCK_FILTER.ifTrue, ifTrue);
    view.setUint8(at + SOCK_FILTER.ifFalse, ifFalse);
    view.setInt32(at + SOCK_FILTER.constant, constant, true);
  }
  return { bytes: new Uint8Array(view.buffer), instructions: program.length };
}

function word(offset: number): Instruction {
  return [LOAD_WORD, 0, 0, NETWORK_HEADER + offset];
}

function fold(bits: number): readonly Instruction[] {
  return [
    [TO_X, 0, 0, 0],
    [SHIFT_RIGHT, 0, 0, bits],
    [XOR_X, 0, 0, 0],
  ];
}

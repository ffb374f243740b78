/**
 * Datagrams of one peer that came as one piece, which the kernel made of neighbours (UDP_GRO) and cuts apart again
 * (UDP_SEGMENT): each of `unit` bytes but the last, which may be shorter. Where all of them are treated alike, the core treats
 * them at once; it does then what it would have done with one after the other.
 */
import type { PlaneInput, PlaneOutput, PlaneTrain } from './plane-contract.ts';

/** How many datagrams `payload` is, at `unit` bytes each. */
export function datagramsIn(payload: Uint8Array, unit: number): number {
  return Math.ceil(payload.length / unit);
}

/** Each of the datagrams. Views are made here: only where each has to be looked at. */
export function eachDatagram(
  payload: Uint8Array,
  unit: number,
  visit: (datagram: Uint8Array) => void,
): void {
  for (let at = 0; at < payload.length; at += unit) visit(payload.subarray(at, at + unit));
}

export function isTrain(input: { readonly kind: string }): input is PlaneTrain {
  return input.kind === 'ClientTrain' || input.kind === 'BackendTrain';
}

/** The inputs that a train stands for, in order. */
export function eachInput(train: PlaneTrain, visit: (input: PlaneInput) => void): void {
  eachDatagram(train.payload, train.unit, (payload) => {
    if (train.kind === 'BackendTrain') {
      visit({ kind: 'BackendArrived', socket: train.socket, payload });
    } else {
      const { listener, src, local } = train;
      visit({ kind: 'ClientArrived', listener, src, local, payload });
    }
  });
}

export type TrainOutput = Extract<PlaneOutput, { kind: 'TrainToBackend' | 'TrainToClient' }>;

export function isTrainOutput(output: { readonly kind: string }): output is TrainOutput {
  return output.kind === 'TrainToBackend' || output.kind === 'TrainToClient';
}

/** The outputs that one of a train stands for, in order. */
export function eachOutput(train: TrainOutput, visit: (output: PlaneOutput) => void): void {
  eachDatagram(train.payload, train.unit, (payload) => {
    if (train.kind === 'TrainToBackend') {
      visit({ kind: 'SendToBackend', socket: train.socket, header: undefined, payload });
    } else {
      const { listener, dst, from } = train;
      visit({ kind: 'SendToClient', listener, dst, from, payload });
    }
  });
}

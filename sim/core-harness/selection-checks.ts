/** What the model cannot see in the sequence of outputs: who was asked for a backend, and by which key. */
import type { Output } from '../../core/contract.ts';
import type { Observer } from '../properties.ts';
import type { ShadowModel } from './model.ts';
import type { SelectionModel } from './model-selection.ts';
import { BACKEND_ADDRESSES, placeIn } from './pools.ts';
import * as properties from './properties.ts';
import type { SimulatedView } from './view.ts';

interface Asked {
  readonly model: ShadowModel;
  readonly selection: SelectionModel;
  readonly view: SimulatedView;
}

/** After a client datagram that machine and model have taken: `outputs` are the machine's. */
export function checkSelection(
  source: number,
  outputs: readonly Output[],
  { model, selection, view }: Asked,
  observer: Observer,
): void {
  const { prediction } = model;
  observer.check(properties.KEYED, view.questions === (prediction === undefined ? 0 : 1));
  if (prediction === undefined || view.asked === undefined) return;
  const { high, low } = selection.keyOf(source, model.withPort);
  observer.check(properties.KEYED, view.asked.high === high && view.asked.low === low);
  const chosen = chosenIn(outputs);
  const { candidates } = prediction;
  const eligible = chosen === undefined ? candidates.length === 0 : candidates.includes(chosen);
  observer.check(properties.ELIGIBLE, eligible);
  observer.check(properties.FAIL_OPEN, prediction.failOpen && chosen !== undefined);
  observer.check(properties.NOBODY_LEFT, prediction.backend === -1);
}

/** The backend that was chosen, as a place in the pool: opened, or its own of old served again. */
function chosenIn(outputs: readonly Output[]): number | undefined {
  for (const output of outputs) {
    if (output.kind === 'OpenUpstream') return placeIn(BACKEND_ADDRESSES, output.backend.address);
    if (output.kind === 'SendToBackend') return placeIn(BACKEND_ADDRESSES, output.dst);
  }
  return undefined;
}

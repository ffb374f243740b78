/** The flow machines keep the invariants of spec §2.14 in a whole world, too: each recount finds what the machine says. */
import { always, type Property } from '../../properties.ts';
import type { OracleKind } from '../oracle.ts';

const KEPT: Property<'always'> = always('flow machines keep their invariants in a world');

export const INVARIANTS: OracleKind = {
  name: 'invariants',
  begin: (verdicts) => ({
    hearings: {
      Verified: ({ process, broken }) => {
        verdicts.check(KEPT, broken.length === 0, () => `process ${process}: ${broken.join('; ')}`);
      },
    },
  }),
};

/** The documents that code has a part in. A test fails when one of them is stale. */
import { configureDocument } from '../../shell/config/configure-doc.ts';
import { alertsDocument } from './alerts.ts';
import { benchmarksDocument, benchmarksPlot } from './benchmarks.ts';
import { dashboardDocument } from './dashboard.ts';
import { controlDocument } from './control.ts';
import { lifecycleDocument } from './lifecycle.ts';
import { metricsDocument } from './metrics.ts';
import { simulationDocument } from './simulation.ts';

export interface GeneratedDocument {
  /** From the root of the repository. */
  readonly path: string;
  /** The document as it should be, from the one that is there: prose is kept. */
  readonly generate: (current: string) => string;
}

export const DOCUMENTS: readonly GeneratedDocument[] = [
  { path: 'doc/BENCHMARKS.md', generate: (current) => benchmarksDocument(current) },
  { path: 'doc/benchmarks.svg', generate: () => benchmarksPlot() },
  { path: 'doc/CONFIGURE.md', generate: configureDocument },
  { path: 'doc/CONTROL.md', generate: controlDocument },
  { path: 'doc/LIFECYCLE.md', generate: lifecycleDocument },
  { path: 'doc/METRICS.md', generate: metricsDocument },
  { path: 'doc/SIMULATION.md', generate: simulationDocument },
  { path: 'examples/alerts.yml', generate: alertsDocument },
  { path: 'examples/grafana-dashboard.json', generate: dashboardDocument },
];

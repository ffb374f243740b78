/**
 * What is wrong between a configuration and the machine that is to run it. What the file alone shows is told by `check`'s own
 * warnings; what the machine's limits come to is told here, with the commands that change them.
 */
import { automaticMaxFlows, LIMITS } from '../../core/index.ts';
import { loadConfig } from '../config/load.ts';
import type { Problem, Severity } from '../config/problem.ts';
import { clientSocket, serverSocket } from '../control/socket-path.ts';
import type { Finding, Patient } from './finding.ts';
import { checkBuffers, checkConntrack, checkDescriptors, checkPorts } from './kernel-checks.ts';
import type { Machine } from './machine.ts';
import { checkAddresses, checkControlSocket, checkDrops, checkIpv6 } from './socket-checks.ts';
import { checkWorkers } from './worker-checks.ts';

const CHECKS = [
  checkDescriptors,
  checkPorts,
  checkBuffers,
  checkConntrack,
  checkIpv6,
  checkAddresses,
  checkDrops,
  checkWorkers,
] as const;

const WORST_FIRST: readonly Severity[] = ['error', 'warning', 'notice'];

/** Findings, the worst first, else in the order of the checks. `file`: undefined for the machine alone. */
export async function examine(machine: Machine, file: string | undefined): Promise<Finding[]> {
  const told = file === undefined ? [] : problemsOf(file, machine);
  const patient = await admit(machine, file);
  const findings = [
    ...told,
    ...CHECKS.flatMap((check) => check(patient)),
    ...(await checkControlSocket(patient)),
    ...(machine.read('/proc/self/limits') === undefined ? [NO_PROC] : []),
  ];
  return findings.toSorted(
    (one, other) => WORST_FIRST.indexOf(one.severity) - WORST_FIRST.indexOf(other.severity),
  );
}

const NO_PROC: Finding = {
  severity: 'notice',
  check: 'machine',
  what: 'this machine has no /proc: its limits are not known',
  why: 'only the configuration was looked at',
  fix: undefined,
};

/** Of limits the checks below tell more, so the file is judged without them. */
function problemsOf(file: string, { environment }: Machine): Finding[] {
  const { localAddresses } = environment;
  return loadConfig(file, { localAddresses }, 'refused').problems.map(findingOf);
}

function findingOf({ severity, path, line, problem, fix }: Problem): Finding {
  const at = line === undefined ? path : `${path} (line ${line})`;
  return { severity, check: 'configuration', what: `${at}: ${problem}`, fix };
}

async function admit(machine: Machine, file: string | undefined): Promise<Patient> {
  const { environment } = machine;
  const { config, settings } =
    file === undefined
      ? { config: undefined, settings: undefined }
      : loadConfig(file, environment, 'refused');
  const socket =
    file === undefined ? clientSocket(undefined) : serverSocket(settings?.commandSocket, file);
  const flows =
    config?.listeners.reduce((sum, { maxFlows }) => sum + maxFlows, 0) ??
    automaticMaxFlows(environment.descriptorLimit, LIMITS.maxConnections);
  const isRunning = socket !== undefined && (await machine.askSocket(socket)) === 'alive';
  return { machine, config, settings, flows, socket, isRunning };
}

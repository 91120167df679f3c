// The command line of `npm start`.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { maxRuntimes } from '@tenantry/contract'
import { defaultGateways, defaultRuntimes, maxGateways } from './default-counts.ts'

export interface LocalOptions {
  /** Whether standard output receives one JSON line when ready, and nothing else. */
  json: boolean
  data: string
  /** Port of the control plane; undefined for 4400, or the next free port. */
  port: number | undefined
  /** Number of runtimes that share the tenants. */
  runtimes: number
  /** Number of gateways, which share the public port. */
  gateways: number
  /** Number of shared tenants' homes that are made in advance. */
  warmHomes: number
  domain: string
  logLevel: string
  /** Whether a service restarts when its code changes. */
  watch: boolean
  /** File of the master key of a lost installation, which is rebuilt from its backup targets; undefined for none. */
  recover: string | undefined
}

export const usage = `npm start -- [options]

  --data DIR        directory of all data (default .tenantry)
  --port N          the control plane's port; the gateway takes the next (default 4400, or the next free one)
  --runtimes N      number of runtimes that share the tenants, 1 to ${maxRuntimes} (default: by the number of cores)
  --gateways N      number of gateways that share the public port, 1 to ${maxGateways} (default: by the number of cores)
  --warm-homes N    number of homes that are created in advance for new tenants, 0 to 200 (default 10)
  --domain NAME     tenants are NAME.DOMAIN (default localhost)
  --log-level L     fatal, error, warn, info, debug or trace (default info)
  --respawn         start the installation again when its own process is killed; not needed with systemd
  --recover FILE    rebuild a lost installation from its backup targets; FILE has its master key
  --watch           restart a service when its code changes
  --json            one JSON line on standard output when ready, logs on standard error
  --help            this text
`

export class UsageError extends Error {}

/** The machine, on which defaults depend. */
interface Machine {
  cwd: string
  /** Number of processor cores. */
  cores: number
}

/** Parses the command line; undefined for --help. @throws UsageError that states the violation */
export function parseOptions(args: string[], { cwd, cores }: Machine): LocalOptions | undefined {
  let values
  try {
    values = parseArgs({
      args,
      options: {
        json: { type: 'boolean', default: false },
        data: { type: 'string', default: '.tenantry' },
        port: { type: 'string' },
        runtimes: { type: 'string' },
        gateways: { type: 'string' },
        'warm-homes': { type: 'string', default: '10' },
        domain: { type: 'string', default: 'localhost' },
        'log-level': { type: 'string', default: 'info' },
        watch: { type: 'boolean', default: false },
        recover: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : 'Unknown option.', { cause })
  }
  if (values.help) return undefined
  const port = values.port === undefined ? undefined : Number(values.port)
  if (port !== undefined && (!Number.isInteger(port) || port < 1 || port > 65_534)) {
    throw new UsageError(`Invalid --port "${values.port ?? ''}". Allowed: a whole number from 1 to 65534.`)
  }
  const runtimes = values.runtimes === undefined ? defaultRuntimes(cores) : Number(values.runtimes)
  if (!Number.isInteger(runtimes) || runtimes < 1 || runtimes > maxRuntimes) {
    throw new UsageError(
      `Invalid --runtimes "${values.runtimes ?? ''}". Allowed: a whole number from 1 to ${maxRuntimes}.`,
    )
  }
  const gateways = values.gateways === undefined ? defaultGateways(cores) : Number(values.gateways)
  if (!Number.isInteger(gateways) || gateways < 1 || gateways > maxGateways) {
    throw new UsageError(
      `Invalid --gateways "${values.gateways ?? ''}". Allowed: a whole number from 1 to ${maxGateways}.`,
    )
  }
  const warmHomes = Number(values['warm-homes'])
  if (!Number.isInteger(warmHomes) || warmHomes < 0 || warmHomes > 200)
    throw new UsageError(`Invalid --warm-homes "${values['warm-homes']}". Allowed: a whole number from 0 to 200.`)
  if (!/^[a-z0-9.-]+$/i.test(values.domain))
    throw new UsageError(`Invalid --domain "${values.domain}". Allowed: a host name.`)
  if (!['fatal', 'error', 'warn', 'info', 'debug', 'trace'].includes(values['log-level'])) {
    throw new UsageError(
      `Invalid --log-level "${values['log-level']}". Allowed: fatal, error, warn, info, debug, trace.`,
    )
  }
  return {
    json: values.json,
    data: resolve(cwd, values.data),
    port,
    runtimes,
    gateways,
    warmHomes,
    domain: values.domain,
    logLevel: values['log-level'],
    watch: values.watch,
    recover: values.recover === undefined ? undefined : resolve(cwd, values.recover),
  }
}

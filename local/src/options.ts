// The command line of `npm start`.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export interface LocalOptions {
  /** One JSON line on standard output when ready, and nothing else there. */
  json: boolean
  data: string
  /** Undefined: 4400, or the next free port. */
  port: number | undefined
  domain: string
  logLevel: string
  /** A service starts anew when its code changes. */
  watch: boolean
}

export const usage = `npm start -- [options]

  --data DIR        where everything is kept (default .tenantry)
  --port N          the control plane's port; the gateway takes the next (default 4400, or the next free one)
  --domain NAME     tenants are NAME.DOMAIN (default localhost)
  --log-level L     fatal, error, warn, info, debug or trace (default info)
  --watch           start a service anew when its code changes
  --json            one JSON line on standard output when ready, logs on standard error
  --help            this text
`

export class UsageError extends Error {}

/** @throws UsageError that says what was wrong; undefined for --help */
export function parseOptions(args: string[], cwd: string): LocalOptions | undefined {
  let values
  try {
    values = parseArgs({
      args,
      options: {
        json: { type: 'boolean', default: false },
        data: { type: 'string', default: '.tenantry' },
        port: { type: 'string' },
        domain: { type: 'string', default: 'localhost' },
        'log-level': { type: 'string', default: 'info' },
        watch: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : 'unknown option', { cause })
  }
  if (values.help) return undefined
  const port = values.port === undefined ? undefined : Number(values.port)
  if (port !== undefined && (!Number.isInteger(port) || port < 1 || port > 65_534)) {
    throw new UsageError(`--port ${values.port ?? ''} must be a whole number from 1 to 65534`)
  }
  if (!/^[a-z0-9.-]+$/i.test(values.domain)) throw new UsageError(`--domain ${values.domain} is no host name`)
  if (!['fatal', 'error', 'warn', 'info', 'debug', 'trace'].includes(values['log-level'])) {
    throw new UsageError(`--log-level ${values['log-level']} is none`)
  }
  return {
    json: values.json,
    data: resolve(cwd, values.data),
    port,
    domain: values.domain,
    logLevel: values['log-level'],
    watch: values.watch,
  }
}
